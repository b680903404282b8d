// Pipes between two processes, each with a GPU of its own where there are two: time of a message
// from the word "go" until both sides are through, beside a contiguous copy of the same bytes
// between the same GPUs.
//
//     make pipe_bench && ./pipe_bench [--quick]     (UCX_CUDA_NC_GPU chooses the backend)
#include <CLI/CLI.hpp>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "tools/perftest/support/statistics.hpp"
#include "ucs/gpu/device.hpp"

namespace {

using namespace cuda_nc;
using namespace cuda_nc::gpu;
using std::chrono::steady_clock;

constexpr size_t largest = 64u << 20;  // bytes of a message
constexpr size_t ring_bytes = 64u << 20;
constexpr size_t words_bytes = max_pipe_channels * pipe_word_stride;

struct offer {
    ipc_handle handle;
    size_t offset;
};

// Both processes see it.
struct meeting {
    uint64_t go, ready, done;
};

[[noreturn]] void fail(const char *what) {
    std::fprintf(stderr, "pipe_bench: %s failed\n", what);
    _exit(1);
}

void need(ucs_status_t status, const char *what) {
    if (status != UCS_OK) {
        fail(what);
    }
}

void publish(uint64_t *word, uint64_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

template <class Condition>
void await(const Condition &holds) {
    auto limit = steady_clock::now() + std::chrono::seconds(60);
    while (!holds()) {
        if (steady_clock::now() > limit) {
            fail("waiting for the other process");
        }
    }
}

void await(const uint64_t *word, uint64_t value) {
    await([=] { return __atomic_load_n(word, __ATOMIC_ACQUIRE) >= value; });
}

double microseconds(steady_clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(steady_clock::now() - begin).count();
}

layout_view vector_of(uint64_t block, uint64_t length) {
    layout_view view;
    view.num_blocks = 1;
    view.packed_size = length;
    view.list_size = view.block_length = block;
    view.by_list = view.by_block = fast_divide(block);
    view.kind = shape::strided;
    view.num_dims = 1;
    view.dims[0] = {length / block, static_cast<int64_t>(2 * block)};
    view.by_dim[0] = fast_divide(length / block);
    view.align_log2 = static_cast<uint8_t>(std::min(4, __builtin_ctzll(block)));
    return view;
}

class process {
  public:
    process(bool sending, int peer, meeting *meet) : sending_(sending), meet_(meet) {
        platform &all = platform::instance();
        if (all.num_devices() == 0) {
            fail("finding a GPU");
        }
        device_ = all.get_device(sending ? 0 : all.num_devices() > 1 ? 1 : 0);
        need(device_->prepare_pipes(), "the pipes' kernels");
        need(device_->create_stream(&stream_), "a stream");
        need(device_->create_event(&mark_), "an event");
        need(device_->allocate(2 * largest, &data_), "GPU memory");
        need(device_->allocate(ring_bytes + words_bytes, &own_), "GPU memory");
        need(device_->allocate(sizeof(pipe_state), &state_), "GPU memory");
        need(device_->allocate_pinned(4096, &report_), "pinned memory");
        std::memset(report_->address(), 0, 4096);
        image_.resize(2 * largest);
        for (size_t i = 0; i < image_.size(); ++i) {
            image_[i] = static_cast<char>(i * 2654435761u >> 11);
        }
        set(data_->address(), sending ? image_ : std::vector<char>(image_.size()));
        set(own_->address(), std::vector<char>(own_->size()));
        set(state_->address(), std::vector<char>(sizeof(pipe_state)));
        offer mine, theirs;
        need(device_->ipc_export(own_->address(), &mine.handle, &mine.offset), "IPC export");
        if (write(peer, &mine, sizeof(mine)) != sizeof(mine) ||
            read(peer, &theirs, sizeof(theirs)) != sizeof(theirs)) {
            fail("the other process");
        }
        need(device_->ipc_open(theirs.handle, &mapped_), "IPC open");
        peer_ = mapped_->address() + theirs.offset;
    }

    const device_properties &properties() const { return device_->properties(); }

    // One message; microseconds, in the sender.
    double message(uint64_t block, uint64_t length, const pipe_geometry &g) {
        ++round_;
        pipe_work w;
        w.dir = sending_ ? direction::pack : direction::unpack;
        const layout_view layout = vector_of(block, length);
        w.layout = &layout;
        w.base = data_->address();
        w.length = length;
        w.geometry = g;
        w.sequence = round_ * pipe_sequence_step;
        char *ring = sending_ ? peer_ : own_->address();
        w.ring = ring;
        w.flags = ring + ring_bytes;
        w.credits = (sending_ ? own_->address() : peer_) + ring_bytes;
        w.state = reinterpret_cast<pipe_state *>(state_->address());
        auto *report = reinterpret_cast<pipe_report *>(report_->address());
        w.report = report;
        w.patience_us = 1000;
        auto begin = start();
        do {
            turns_.begin(&w);
            size_t launched;
            need(stream_->launch(&w, 1, &launched), "a launch");
            turns_.launched(w);
            await([&] { return turns_.has_left(); });
            w.resumes = true;
        } while (!turns_.is_through());
        return finish(begin);
    }

    // The same bytes by a plain copy between the GPUs.
    double copy(uint64_t length) {
        ++round_;
        auto begin = start();
        if (sending_) {
            need(stream_->copy(peer_, data_->address(), length), "a copy");
            need(stream_->record(*mark_), "a mark");
            while (mark_->query() == UCS_INPROGRESS) {
            }
        }
        return finish(begin);
    }

    // In the receiver: the bytes and the gaps. Then everything is zero again.
    void check(uint64_t block, uint64_t length) {
        if (!sending_) {
            std::vector<char> seen(2 * length);
            need(stream_->copy(seen.data(), data_->address(), seen.size()), "a copy");
            for (size_t i = 0; i < seen.size(); ++i) {
                if (seen[i] != (i / block % 2 == 0 ? image_[i] : 0)) {
                    std::printf("WRONG byte %zu of %zu\n", i, seen.size());
                    fail("verification");
                }
            }
            set(data_->address(), std::vector<char>(2 * length));
        }
        start();
        finish(steady_clock::now());
    }

  private:
    void set(char *target, const std::vector<char> &bytes) {
        need(stream_->copy(target, bytes.data(), bytes.size()), "a copy");
        need(stream_->record(*mark_), "a mark");
        need(mark_->synchronize(), "a copy");
    }

    // Both processes leave it at the same time.
    steady_clock::time_point start() {
        ++meetings_;
        if (!sending_) {
            publish(&meet_->ready, meetings_);
            await(&meet_->go, meetings_);
            return steady_clock::now();
        }
        await(&meet_->ready, meetings_);
        auto begin = steady_clock::now();
        publish(&meet_->go, meetings_);
        return begin;
    }

    double finish(steady_clock::time_point begin) {
        if (!sending_) {
            publish(&meet_->done, meetings_);
        } else {
            await(&meet_->done, meetings_);
        }
        return microseconds(begin);
    }

    bool sending_;
    meeting *meet_;
    device *device_ = nullptr;
    std::unique_ptr<stream> stream_;
    std::unique_ptr<event> mark_;
    std::unique_ptr<memory> data_, own_, state_, report_, mapped_;
    char *peer_ = nullptr;
    std::vector<char> image_;
    uint64_t round_ = 0, meetings_ = 0;
    launch_tracker turns_;
};

void run(bool sending, int peer, meeting *meet, bool quick) {
    process me(sending, peer, meet);
    if (sending) {
        std::printf("# %s; us, median; ratio to a copy of the same bytes between the GPUs\n",
                    me.properties().name.c_str());
        std::printf("# %8s %6s %5s %7s %5s %9s %9s %6s %7s\n", "bytes", "block", "channels",
                    "chunk", "depth", "us", "copy us", "ratio", "GB/s");
    }
    const int repeats = quick ? 3 : 21;
    for (uint64_t length : {64u << 10, 256u << 10, 1u << 20, 4u << 20, 16u << 20, 64u << 20}) {
        if (quick && length > (1u << 20)) {
            break;
        }
        std::vector<double> copies;
        for (int i = 0; i < repeats; ++i) {
            copies.push_back(me.copy(length));
        }
        for (uint64_t block : {8, 64, 4096}) {
            for (uint32_t channels : {16u, 32u, 64u, 128u}) {
                for (uint32_t chunk = 2048; chunk <= (128u << 10); chunk *= 2) {
                    for (uint32_t depth : {2u, 4u}) {
                        uint64_t round_bytes = uint64_t{channels} * chunk;
                        if (round_bytes > length || round_bytes * depth > ring_bytes ||
                            length / round_bytes > 64 || (quick && depth == 4)) {
                            continue;
                        }
                        pipe_geometry g{channels, chunk, depth};
                        std::vector<double> times;
                        for (int i = 0; i < repeats; ++i) {
                            times.push_back(me.message(block, length, g));
                        }
                        me.check(block, length);
                        if (sending) {
                            double us = tools::median_of(times), copy_us = tools::median_of(copies);
                            std::printf("%10lu %6lu %5u %7u %5u %9.1f %9.1f %6.2f %7.1f\n",
                                        static_cast<unsigned long>(length),
                                        static_cast<unsigned long>(block), channels, chunk, depth,
                                        us, copy_us, us / copy_us,
                                        static_cast<double>(length) / us / 1e3);
                            std::fflush(stdout);
                        }
                    }
                }
            }
        }
    }
}

}  // namespace

int main(int argc, char **argv) {
    bool quick = false;
    CLI::App app("Pipes between two GPUs, beside contiguous copies", "pipe_bench");
    app.add_flag("--quick", quick, "Messages up to 1 MiB, 3 repeats");
    CLI11_PARSE(app, argc, argv);
    int pair[2];
    void *shared =
        mmap(nullptr, sizeof(meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
        fail("setting up");
    }
    pid_t child = fork();
    auto *meet = static_cast<meeting *>(shared);
    if (child == 0) {
        run(false, pair[1], meet, quick);
        return 0;
    }
    run(true, pair[0], meet, quick);
    int status;
    waitpid(child, &status, 0);
    return status == 0 ? 0 : 1;
}
