#include "tools/perftest/support/timed_transfer.hpp"

#include <chrono>
#include <cstring>

#include <fmt/core.h>

#include "tools/perftest/support/sectors.hpp"
#include "ucs/exec/host/host_executor.hpp"
#include "ucs/gpu/completion.hpp"
#include "ucs/gpu/given_orders.hpp"
#include "ucs/worklist/worklist.hpp"

namespace cuda_nc::tools {
namespace {

constexpr size_t alignment = 256;  // of the buffers, and the largest misalignment

void check(ucs_status_t status, const char *what) {
    if (status != UCS_OK) {
        throw run_error(fmt::format("{} failed: {}", what, status_text(status)));
    }
}

template <class Action>
double seconds_of(Action &&action) {
    auto begin = std::chrono::steady_clock::now();
    action();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct sizes {
    explicit sizes(const transfer_request &r)
        : packed(r.what->packed_size()),
          source(r.dir == gpu::direction::unpack ? packed : laid_out_size(*r.what)),
          target(r.dir == gpu::direction::pack ? packed : laid_out_size(*r.what)),
          source_skew(r.dir == gpu::direction::unpack ? 0 : r.misalign),
          target_skew(r.dir == gpu::direction::pack ? 0 : r.misalign) {}
    size_t packed, source, target, source_skew, target_skew;
};

// 0: not known, or no memory to count them.
uint64_t touched_by(const transfer_request &r, uint64_t sector_size) {
    try {
        return touched_bytes(*r.what, r.dir, r.misalign % sector_size, sector_size).value_or(0);
    } catch (const std::bad_alloc &) {
        return 0;
    }
}

class host_transfer final : public timed_transfer {
  public:
    explicit host_transfer(const transfer_request &r)
        : request_(r),
          size_(r),
          source_(size_.source + 2 * alignment),
          target_(size_.target + 2 * alignment),
          copy_(size_.packed, 1),
          copied_(size_.packed, 2) {}

    void fill(const std::vector<char> &source, const std::vector<char> &target) override {
        std::memcpy(aligned(source_) + size_.source_skew, source.data(), source.size());
        std::memcpy(aligned(target_) + size_.target_skew, target.data(), target.size());
    }
    std::vector<char> read_target() override {
        const char *begin = aligned(target_) + size_.target_skew;
        return std::vector<char>(begin, begin + size_.target);
    }
    double first_use() override { return run(1); }
    size_t table_bytes() const override { return request_.what->table_bytes(); }
    double run(unsigned times) override {
        const layout_view &view = request_.what->view();
        const int64_t low = request_.what->lower_bound();
        char *source = aligned(source_) + size_.source_skew;
        char *target = aligned(target_) + size_.target_skew;
        double all = seconds_of([&] {
            for (unsigned i = 0; i < times; ++i) {
                switch (request_.dir) {
                    case gpu::direction::pack:
                        exec::host_pack(view, source - low, 0, target, size_.packed);
                        break;
                    case gpu::direction::unpack:
                        exec::host_unpack(view, target - low, 0, source, size_.packed);
                        break;
                    case gpu::direction::copy:
                        exec::host_copy(request_.what->in_memory_order().view(), source - low,
                                        target - low, 0, size_.packed);
                        break;
                }
            }
        });
        return all / times;
    }
    double plain_copy(unsigned times) override { return copy(copy_, &copied_, times); }
    uint64_t prepare_sector_copy() override {
        const uint64_t touched = touched_by(request_, host_sector);
        try {
            sectors_.assign(touched / 2, 1);
            copied_sectors_.assign(touched / 2, 2);
        } catch (const std::bad_alloc &) {
            return 0;
        }
        return touched;
    }
    double sector_copy(unsigned times) override { return copy(sectors_, &copied_sectors_, times); }

  private:
    static double copy(const std::vector<char> &from, std::vector<char> *to, unsigned times) {
        double all = seconds_of([&] {
            for (unsigned i = 0; i < times; ++i) {
                std::memcpy(to->data(), from.data(), from.size());
                asm volatile("" : : "r"(to->data()) : "memory");  // not optimised away
            }
        });
        return all / times;
    }
    static char *aligned(std::vector<char> &bytes) {
        auto at = reinterpret_cast<uintptr_t>(bytes.data()) % alignment;
        return bytes.data() + (at == 0 ? 0 : alignment - at);
    }

    const transfer_request request_;
    const sizes size_;
    std::vector<char> source_, target_, copy_, copied_;
    // Buffers of its own: what the plain copy left in the caches would make it faster.
    std::vector<char> sectors_, copied_sectors_;
};

// Both sides lie in GPU memory; with memory_choice::pinned the packed side lies in pinned host
// memory.
class gpu_transfer final : public timed_transfer {
  public:
    explicit gpu_transfer(const transfer_request &r) : request_(r), size_(r) {
        gpu::platform &platform = gpu::platform::instance();
        device_ = platform.get_device(r.device);
        if (device_ == nullptr) {
            throw run_error(fmt::format("there is no GPU {} (backend {}: {})", r.device,
                                        platform.name(), platform.why()));
        }
        const bool pinned = r.memory == memory_choice::pinned;
        make(pinned && r.dir == gpu::direction::unpack, size_.source, &source_);
        make(pinned && r.dir != gpu::direction::unpack, size_.target, &target_);
        make(pinned && r.dir == gpu::direction::unpack, size_.packed, &copy_);
        make(pinned && r.dir != gpu::direction::unpack, size_.packed, &copied_);
        check(device_->create_stream(&stream_), "making a stream");
        end_ = gpu::completion::make(*device_);
        check(end_ != nullptr ? UCS_OK : UCS_ERR_NO_RESOURCE, "making an event");
    }
    ~gpu_transfer() override { end_->mark->synchronize(); }

    void fill(const std::vector<char> &source, const std::vector<char> &target) override {
        copy(source_->address() + size_.source_skew, source.data(), source.size());
        copy(target_->address() + size_.target_skew, target.data(), target.size());
        finish();
    }
    std::vector<char> read_target() override {
        std::vector<char> bytes(size_.target);
        copy(bytes.data(), target_->address() + size_.target_skew, bytes.size());
        finish();
        return bytes;
    }
    double first_use() override {
        worklist::trim(*device_);
        return seconds_of([&] {
            const bool copies = request_.dir == gpu::direction::copy;
            const layout_ref &what = request_.what;
            check(worklist::acquire(
                      *device_, copies ? layout_ref(what, &what->in_memory_order()) : what, &list_),
                  "making the work list");
            launch(nullptr);
            finish();
        });
    }
    size_t table_bytes() const override { return list_->device_bytes(); }
    // A single call is made as the engine makes it: an order to the mover where that takes it, else
    // a launch, which is waited for on the words that its kernel writes.
    double run(unsigned times) override {
        if (times == 1) {
            return seconds_of([&] {
                gpu::given_orders order;
                if (give(&order) && order.await() != UCS_ERR_CANCELED) {
                    check(order.query(), "an order");
                    return;
                }
                launch(end_->next_ends());
                mark_end();
                gpu::given_orders::launched_instead(*device_);
                check(end_->await(), "waiting for the GPU");
            });
        }
        return repeat(times, [&] { launch(nullptr); });
    }
    double plain_copy(unsigned times) override {
        return repeat(times, [&] { copy(copied_->address(), copy_->address(), size_.packed); });
    }
    uint64_t prepare_sector_copy() override {
        touched_ = request_.memory == memory_choice::pinned ? 0 : touched_by(request_, gpu_sector);
        if (touched_ == 0) {
            return 0;
        }
        try {
            make(false, touched_ / 2, &sectors_);
            make(false, touched_ / 2, &copied_sectors_);
        } catch (const run_error &) {
            sectors_.reset();
            touched_ = 0;
        }
        return touched_;
    }
    double sector_copy(unsigned times) override {
        return repeat(times,
                      [&] { copy(copied_sectors_->address(), sectors_->address(), touched_ / 2); });
    }

  private:
    void make(bool pinned, size_t size, std::unique_ptr<gpu::memory> *memory_p) {
        size += 2 * alignment;
        ucs_status_t status =
            pinned ? device_->allocate_pinned(size, memory_p) : device_->allocate(size, memory_p);
        if (status != UCS_OK) {
            throw run_error(fmt::format("cannot allocate {} MiB of {} memory: {}", size >> 20,
                                        pinned ? "pinned" : "GPU", status_text(status)));
        }
    }
    void copy(char *target, const char *source, size_t size) {
        check(stream_->copy(target, source, size), "a copy");
    }
    gpu::transfer describe() const {
        const int64_t low = request_.what->lower_bound();
        gpu::transfer work;
        work.dir = request_.dir;
        work.layout = list_->view();
        char *source = source_->address() + size_.source_skew;
        char *target = target_->address() + size_.target_skew;
        const bool unpack = request_.dir == gpu::direction::unpack;
        work.base = (unpack ? target : source) - low;
        work.packed = unpack                                 ? source
                      : request_.dir == gpu::direction::copy ? target - low
                                                             : target;
        work.length = size_.packed;
        work.max_sms = request_.max_sms;
        work.into_own_memory = unpack || request_.memory != memory_choice::pinned;
        return work;
    }
    void launch(gpu::end_words *ends) {
        gpu::transfer work = describe();
        work.ends = ends;
        check(worklist::launch(*list_, *stream_, work), "a launch");
    }
    bool give(gpu::given_orders *order) {
        return list_->is_ready(size_.packed) && order->give(*device_, describe());
    }
    void mark_end() { check(stream_->record(*end_->mark), "marking the stream"); }
    void finish() {
        mark_end();
        check(end_->mark->synchronize(), "waiting for the GPU");
    }
    template <class Action>
    double repeat(unsigned times, Action &&action) {
        double all = seconds_of([&] {
            for (unsigned i = 0; i < times; ++i) {
                action();
            }
            finish();
        });
        return all / times;
    }

    const transfer_request request_;
    const sizes size_;
    uint64_t touched_ = 0;
    gpu::device *device_ = nullptr;
    std::unique_ptr<gpu::memory> source_, target_, copy_, copied_, sectors_, copied_sectors_;
    worklist::work_list_ref list_;
    std::unique_ptr<gpu::completion> end_;
    std::unique_ptr<gpu::stream> stream_;  // destroyed first: waits for its work
};

}  // namespace

size_t laid_out_size(const layout &what) {
    return static_cast<size_t>(what.upper_bound() - what.lower_bound());
}

std::unique_ptr<timed_transfer> make_timed_transfer(const transfer_request &request) {
    try {
        if (request.memory == memory_choice::host) {
            return std::make_unique<host_transfer>(request);
        }
        return std::make_unique<gpu_transfer>(request);
    } catch (const std::bad_alloc &) {
        throw run_error(fmt::format("cannot allocate {} MiB of host memory",
                                    (laid_out_size(*request.what) * 2) >> 20));
    }
}

}  // namespace cuda_nc::tools
