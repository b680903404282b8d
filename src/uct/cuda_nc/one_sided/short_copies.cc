#include "uct/cuda_nc/one_sided/short_copies.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "ucs/base/settings.hpp"
#include "ucs/gpu/given_orders.hpp"
#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::uct {
namespace {

using namespace abi;

// ---- the copy

// Pinned memory of one GPU for copies that are under way. Lives as long as the process.
class copy_places {
  public:
    // Null: all are taken, or there is no such memory.
    char *take() noexcept {
        uint64_t free = free_.load(std::memory_order_relaxed);
        while (free != 0) {
            const unsigned number = static_cast<unsigned>(__builtin_ctzll(free));
            if (free_.compare_exchange_weak(free, free & (free - 1), std::memory_order_acquire)) {
                return memory_->address() + number * longest_short_copy;
            }
        }
        return nullptr;
    }
    void put_back(const char *place) noexcept {
        const auto number = static_cast<size_t>(place - memory_->address()) / longest_short_copy;
        free_.fetch_or(uint64_t{1} << number, std::memory_order_release);
    }

    // Null before make(), and where that failed.
    static copy_places *of(gpu::device &device) noexcept {
        const size_t ordinal = ordinal_of(device);
        return ordinal < all_.size() ? all_[ordinal].load(std::memory_order_acquire) : nullptr;
    }
    // Once for each GPU; with its mover. May wait for all kernels of the GPU.
    static void make(gpu::device &device) noexcept try {
        static std::mutex mutex;
        static std::array<bool, most_gpus> tried;
        const size_t ordinal = ordinal_of(device);
        std::lock_guard<std::mutex> guard(mutex);
        if (ordinal >= all_.size() || std::exchange(tried[ordinal], true) ||
            device.get_mover() == nullptr) {
            return;
        }
        auto made = std::make_unique<copy_places>();
        if (device.allocate_pinned(number_of_places * longest_short_copy, &made->memory_) ==
            UCS_OK) {
            all_[ordinal].store(made.release(), std::memory_order_release);
        }
    } catch (const std::bad_alloc &) {
        // UCX goes on to copy
    }

  private:
    static constexpr unsigned number_of_places = 16;

    static constexpr size_t most_gpus = 64;

    static size_t ordinal_of(const gpu::device &device) noexcept {
        return static_cast<size_t>(device.properties().ordinal);
    }

    static inline std::array<std::atomic<copy_places *>, most_gpus> all_;

    std::unique_ptr<gpu::memory> memory_;
    std::atomic<uint64_t> free_{(uint64_t{1} << number_of_places) - 1};  // a bit for each place
};

gpu::transfer describe(gpu::direction dir, char *on_gpu, char *packed, size_t length) noexcept {
    gpu::transfer work;
    work.dir = dir;
    work.layout = contiguous_view(length);
    work.base = on_gpu;
    work.packed = packed;
    work.length = length;
    work.into_own_memory = dir == gpu::direction::unpack;
    return work;
}

// ---- cuda_copy's operations

struct originals {
    std::atomic<decltype(uct_tl::iface_open)> open{nullptr};
    std::atomic<decltype(uct_iface_ops::ep_put_short)> put{nullptr};
    std::atomic<decltype(uct_iface_ops::ep_get_short)> get{nullptr};
};
std::array<originals, max_ucx_instances> originals_of;

template <typename calling>
ucs_status_t make(short_copy copy, const calling &by_ucx) noexcept {
    if (copy.make()) {
        return UCS_OK;
    }
    const ucs_status_t status = by_ucx();
    copy.made_otherwise();
    return status;
}

template <size_t instance>
struct led {
    static ucs_status_t put(uct_ep *ep, const void *from, unsigned length, uint64_t to,
                            uintptr_t rkey) {
        return make({gpu::direction::unpack, reinterpret_cast<char *>(to),
                     const_cast<char *>(static_cast<const char *>(from)), length},
                    [=] { return originals_of[instance].put.load()(ep, from, length, to, rkey); });
    }
    static ucs_status_t get(uct_ep *ep, void *to, unsigned length, uint64_t from, uintptr_t rkey) {
        return make(
            {gpu::direction::pack, reinterpret_cast<char *>(from), static_cast<char *>(to), length},
            [=] { return originals_of[instance].get.load()(ep, to, length, from, rkey); });
    }
    static ucs_status_t open(uct_md *md, void *worker, const uct_iface_params *params,
                             const uct_iface_config *config, uct_iface **iface_p) {
        const ucs_status_t status =
            originals_of[instance].open.load()(md, worker, params, config, iface_p);
        if (status == UCS_OK) {
            lead_short_copies(instance, **iface_p);
        }
        return status;
    }
};

struct led_operations {
    decltype(uct_tl::iface_open) open;
    decltype(uct_iface_ops::ep_put_short) put;
    decltype(uct_iface_ops::ep_get_short) get;
};
template <size_t... instances>
constexpr std::array<led_operations, sizeof...(instances)> list_led(
    std::index_sequence<instances...>) {
    return {{{led<instances>::open, led<instances>::put, led<instances>::get}...}};
}
constexpr auto led_of = list_led(std::make_index_sequence<max_ucx_instances>());

uct_tl *find_cuda_copy(const ucx_api &ucx) noexcept {
    uct_tl *found = nullptr;
    for_each_transport(ucx, [&](uct_component *, uct_tl &tl) {
        if (is_named(tl, "cuda_copy")) {
            found = &tl;
        }
    });
    return found;
}

}  // namespace

short_copy::short_copy(gpu::direction dir, char *on_gpu, char *on_host, size_t length) noexcept
    : dir_(dir), on_gpu_(on_gpu), on_host_(on_host), length_(length) {
    gpu::platform &gpus = gpu::platform::instance();
    // cuda_copy's operations take any memory, though UCX gives them the CPU's.
    if (length == 0 || length > longest_short_copy || !gpu::is_on_host(gpus.query(on_host).kind)) {
        return;
    }
    const gpu::memory_info memory = gpus.query(on_gpu);
    if (memory.kind == gpu::memory_kind::device &&
        memory.allocation.holds(reinterpret_cast<uintptr_t>(on_gpu), length)) {
        device_ = gpus.get_device(memory.device);
    }
}

bool short_copy::make() noexcept {
    copy_places *places = device_ != nullptr ? copy_places::of(*device_) : nullptr;
    char *place = places != nullptr ? places->take() : nullptr;
    if (place == nullptr) {
        return false;
    }
    if (dir_ == gpu::direction::unpack) {
        std::memcpy(place, on_host_, length_);
    }
    bool is_made = false;
    {
        gpu::given_orders order;
        gpu::giving how;
        how.to_present_kernel = true;
        is_made = order.give(*device_, describe(dir_, on_gpu_, place, length_), how) &&
                  order.await() == UCS_OK;
    }
    if (is_made && dir_ == gpu::direction::pack) {
        std::memcpy(on_host_, place, length_);
    }
    places->put_back(place);
    return is_made;
}

void short_copy::made_otherwise() noexcept {
    if (device_ != nullptr && copy_places::of(*device_) != nullptr) {
        gpu::given_orders::launched_instead(*device_);
    } else if (device_ != nullptr) {
        copy_places::make(*device_);
    }
}

void lead_short_copies(unsigned instance, uct_iface &of) noexcept {
    originals &kept = originals_of[instance];
    const led_operations &ours = led_of[instance];
    uct_iface_ops &ops = of.ops;
    if (ops.ep_put_short != nullptr && ops.ep_get_short != nullptr &&
        ops.ep_put_short != ours.put) {
        kept.put = ops.ep_put_short;
        kept.get = ops.ep_get_short;
        ops.ep_put_short = ours.put;
        ops.ep_get_short = ours.get;
    }
}

void lead_short_copies(const ucx_api &ucx) noexcept {
    static std::mutex mutex;
    std::lock_guard<std::mutex> guard(mutex);
    uct_tl *tl = config().mover ? find_cuda_copy(ucx) : nullptr;
    const led_operations &ours = led_of[ucx.instance];
    if (tl != nullptr && tl->iface_open != ours.open) {
        originals_of[ucx.instance].open = tl->iface_open;
        __atomic_store_n(&tl->iface_open, ours.open, __ATOMIC_RELEASE);
    }
}

}  // namespace cuda_nc::uct
