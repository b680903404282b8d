// The mover beside a launch and a copy, on the GPU that UCX_CUDA_NC_GPU chooses: microseconds from
// the CPU's order until the CPU sees the end. Blocks of one length at twice their length go to
// places laid out alike on the same GPU. Every byte and every gap is checked.
//
//     make mover_probe && ./mover_probe [--repeats N] [--burst N] [--peer] [BYTESxBLOCK ...]
//
// --peer: they come from the next GPU, as a message's do.
// copy: contiguous, by a stream and an event. launch: one kernel, its report in pinned memory.
// order: given to the mover while its kernel is there. late: a launch after a pause. burst: N
// orders given at once (of long ones as many as a mover takes), until the last one has ended, for
// each. give: of an order, what the CPU
// takes to give it. Medians and, of some, 95th percentiles. Exit status 1: a wrong byte, or an
// order that was not taken.
#include <cuda_runtime_api.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tools/perftest/support/statistics.hpp"
#include "ucs/gpu/device.hpp"

namespace {

using namespace cuda_nc;
using namespace cuda_nc::gpu;
using std::chrono::steady_clock;

struct options {
    unsigned repeats = 300, burst = 16;
    bool peer = false;
    std::vector<std::string> cases;
};

struct move_case {
    uint64_t bytes, block;
};

[[noreturn]] void fail(const char *what) {
    std::fprintf(stderr, "mover_probe: %s failed\n", what);
    std::exit(1);
}

void need(ucs_status_t status, const char *what) {
    if (status != UCS_OK) {
        fail(what);
    }
}

template <class Condition>
void await(const Condition &holds, const char *what) {
    const auto limit = steady_clock::now() + std::chrono::seconds(20);
    while (!holds()) {
        if (steady_clock::now() > limit) {
            fail(what);
        }
    }
}

layout_view blocks_of(const move_case &what) {
    layout_view view;
    view.kind = shape::strided;
    view.num_blocks = view.num_dims = 1;
    view.packed_size = what.bytes;
    view.list_size = view.block_length = what.block;
    view.by_list = view.by_block = fast_divide(what.block);
    view.dims[0] = {what.bytes / what.block, static_cast<int64_t>(2 * what.block)};
    view.by_dim[0] = fast_divide(what.bytes / what.block);
    view.align_log2 = static_cast<uint8_t>(std::min(4, __builtin_ctzll(what.block)));
    return view;
}

class probe {
  public:
    explicit probe(const options &how) : how_(how) {
        platform &all = platform::instance();
        if (all.num_devices() == 0) {
            fail("finding a GPU");
        }
        device_ = all.get_device(0);
        mover_ = device_->get_mover();
        if (mover_ == nullptr) {
            fail("having a mover (it needs UCX_CUDA_NC_MOVER=y, and no debugger)");
        }
        if (how_.peer) {
            from_ = all.num_devices() > 1 ? all.get_device(1) : nullptr;
            if (from_ == nullptr || cudaSetDevice(0) != cudaSuccess ||
                cudaDeviceEnablePeerAccess(1, 0) != cudaSuccess) {
                fail("reading another GPU's memory");
            }
        }
        need(device_->create_stream(&stream_), "a stream");
        need(device_->create_event(&mark_), "an event");
        need(device_->allocate(sizeof(pipe_state), &state_), "GPU memory");
        need(device_->allocate_pinned(sizeof(pipe_report), &report_), "pinned memory");
        std::memset(report_->address(), 0, sizeof(pipe_report));
        const std::vector<char> zeros(sizeof(pipe_state));
        set(state_->address(), zeros);
        std::printf("# %s\n", device_->properties().name.c_str());
    }

    // False: a wrong byte.
    bool run(const move_case &what) {
        const size_t span = 2 * what.bytes;
        std::unique_ptr<memory> from, to;
        need((how_.peer ? from_ : device_)->allocate(span, &from), "GPU memory");
        need(device_->allocate(span, &to), "GPU memory");
        std::vector<char> image(span), gaps(span, char{0x5a});
        for (size_t i = 0; i < span; ++i) {
            image[i] = static_cast<char>(i * 2654435761u >> 11);
        }
        set(from->address(), image);
        view_ = blocks_of(what);
        bool right = true;
        auto checked = [&](const char *by) {
            right = check(what, image, to->address(), by) && right;
            set(to->address(), gaps);
        };
        set(to->address(), gaps);
        const auto launches = times([&] { launch(what, from->address(), to->address()); });
        checked("launch");
        gives_.clear();
        const auto orders = times([&] { order(what, from->address(), to->address(), 1); });
        checked("order");
        const double give = tools::median_of(gives_);
        constexpr std::chrono::microseconds pause(1500);
        const auto late_launches =
            times([&] { launch(what, from->address(), to->address()); }, pause);
        // Of long orders a mover takes fewer at a time.
        const unsigned burst =
            what.bytes <= longest_of_many
                ? how_.burst
                : static_cast<unsigned>(std::min<uint64_t>(how_.burst, most_together / what.bytes));
        const auto bursts = times([&] { order(what, from->address(), to->address(), burst); });
        checked("burst");
        const auto copies = times([&] {
            need(stream_->copy(to->address(), from->address(), what.bytes), "a copy");
            need(stream_->record(*mark_), "an event");
            await([&] { return mark_->query() != UCS_INPROGRESS; }, "a copy");
        });
        std::printf("%9llu %8llu |", static_cast<unsigned long long>(what.bytes),
                    static_cast<unsigned long long>(what.block));
        for (const std::vector<double> *one : {&copies, &launches, &orders}) {
            std::printf(" %8.2f %8.2f |", tools::median_of(*one), late(*one));
        }
        std::printf(" %8.2f | %8.2f | %5.2f | %s\n", tools::median_of(late_launches),
                    tools::median_of(bursts) / burst, give, right ? "right" : "WRONG");
        std::fflush(stdout);
        return right;
    }

  private:
    template <class Work>
    std::vector<double> times(Work &&work, std::chrono::microseconds pause = {}) {
        std::vector<double> all;
        for (unsigned i = 0; i < how_.repeats + 10; ++i) {
            if (pause.count() != 0) {
                std::this_thread::sleep_for(pause);
            }
            const auto begin = steady_clock::now();
            work();
            const std::chrono::duration<double, std::micro> took = steady_clock::now() - begin;
            if (i >= 10) {
                all.push_back(took.count());
            }
        }
        return all;
    }
    static double late(std::vector<double> all) {
        std::sort(all.begin(), all.end());
        return all[all.size() * 95 / 100];
    }

    void order(const move_case &what, const char *from, char *to, unsigned number) {
        move_order one;
        one.source_base = from;
        one.target = &view_;
        one.target_base = to;
        one.length = what.bytes;
        one.into_own_memory = true;
        const std::vector<move_order> orders(number, one);
        std::vector<mover::ticket> tickets(number);
        size_t given = 0;
        await(
            [&] {
                const auto begin = steady_clock::now();
                given +=
                    mover_->give(orders.data() + given, number - given, tickets.data() + given);
                const std::chrono::duration<double, std::micro> took = steady_clock::now() - begin;
                if (given == 0) {
                    mover_->expect();
                } else {
                    gives_.push_back(took.count());
                }
                return given == number;
            },
            "giving an order");
        for (const mover::ticket its : tickets) {
            await([&] { return mover_->state(its) != UCS_INPROGRESS; }, "an order");
            need(mover_->state(its), "an order");
            mover_->release(its);
        }
    }

    void launch(const move_case &what, const char *from, char *to) {
        pipe_work work;
        work.dir = direction::unpack;
        work.pulls = work.into_own_memory = true;
        work.layout = &view_;
        work.base = to;
        work.source_base = const_cast<char *>(from);
        work.length = what.bytes;
        work.geometry.depth = 1;
        work.geometry.chunk_size = static_cast<uint32_t>(
            std::min<uint64_t>(max_pull_chunk, std::max<uint64_t>(4096, what.bytes / 16)));
        work.geometry.channels = static_cast<uint32_t>(std::min<uint64_t>(
            64, (what.bytes + work.geometry.chunk_size - 1) / work.geometry.chunk_size));
        work.sequence = ++sequence_ * pipe_sequence_step;
        work.state = reinterpret_cast<pipe_state *>(state_->address());
        work.report = reinterpret_cast<pipe_report *>(report_->address());
        size_t launched = 0;
        turns_.begin(&work);
        need(stream_->launch(&work, 1, &launched), "a launch");
        turns_.launched(work);
        await([&] { return turns_.has_left(); }, "a kernel");
    }

    bool check(const move_case &what, const std::vector<char> &image, const char *to,
               const char *by) {
        std::vector<char> found(image.size());
        need(stream_->copy(found.data(), to, found.size()), "a copy");
        need(stream_->record(*mark_), "an event");
        need(mark_->synchronize(), "a copy");
        for (size_t i = 0; i < found.size(); ++i) {
            const char wanted = i / what.block % 2 == 0 ? image[i] : char{0x5a};
            if (found[i] != wanted) {
                std::printf("WRONG byte %zu of %zu by %s\n", i, found.size(), by);
                return false;
            }
        }
        return true;
    }
    void set(char *where, const std::vector<char> &bytes) {
        need(stream_->copy(where, bytes.data(), bytes.size()), "a copy");
        need(stream_->record(*mark_), "an event");
        need(mark_->synchronize(), "a copy");
    }

    const options &how_;
    device *device_ = nullptr, *from_ = nullptr;
    mover *mover_ = nullptr;
    std::unique_ptr<stream> stream_;
    std::unique_ptr<event> mark_;
    std::unique_ptr<memory> state_, report_;
    layout_view view_;
    std::vector<double> gives_;
    launch_tracker turns_;
    uint64_t sequence_ = 0;
};

}  // namespace

int main(int argc, char **argv) {
    options how;
    CLI::App app("Orders to a mover beside launches and copies", "mover_probe");
    app.add_option("--repeats", how.repeats, "Of each measurement")->check(CLI::PositiveNumber);
    app.add_option("--burst", how.burst, "Orders given at once")->check(CLI::Range(1, 200));
    app.add_flag("--peer", how.peer, "The blocks come from the next GPU");
    app.add_option("cases", how.cases, "BYTESxBLOCK ...");
    CLI11_PARSE(app, argc, argv);
    if (how.cases.empty()) {
        how.cases = {"8x8",       "4096x8",     "4096x4096",   "65536x8",
                     "65536x64",  "65536x4096", "262144x64",   "262144x4096",
                     "1048576x8", "1048576x64", "1048576x4096"};
    }
    setenv("UCX_CUDA_NC_MOVER", "y", 0);
    probe all(how);
    std::printf(
        "#   bytes    block |     copy      p95 |   launch      p95 |    order      p95 | late "
        "launch, "
        "order |    burst |  give\n");
    bool right = true;
    for (const std::string &text : how.cases) {
        unsigned long long bytes = 0, block = 0;
        char rest;
        if (std::sscanf(text.c_str(), "%llux%llu%c", &bytes, &block, &rest) != 2 || block == 0 ||
            bytes == 0 || bytes % block != 0 || bytes > longest_order) {
            std::fprintf(stderr, "mover_probe: %s is not BYTESxBLOCK of up to 1 MiB\n",
                         text.c_str());
            return 2;
        }
        right = all.run({bytes, block}) && right;
    }
    return right ? 0 : 1;
}
