#include "uct/cuda_nc/one_sided/short_copies.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "ucs/base/settings.hpp"
#include "ucs/gpu/device.hpp"
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

    static copy_places *of(gpu::device &device) noexcept {
        static std::array<std::atomic<copy_places *>, 64> all;
        const auto ordinal = static_cast<size_t>(device.properties().ordinal);
        if (ordinal >= all.size()) {
            return nullptr;
        }
        copy_places *known = all[ordinal].load(std::memory_order_acquire);
        return known != nullptr ? known : make(device, all[ordinal]);
    }

  private:
    static constexpr unsigned number_of_places = 16;

    static copy_places *make(gpu::device &device, std::atomic<copy_places *> &known) noexcept try {
        static std::mutex mutex;
        std::lock_guard<std::mutex> guard(mutex);
        if (known.load(std::memory_order_relaxed) == nullptr) {
            auto made = std::make_unique<copy_places>();
            if (device.allocate_pinned(number_of_places * longest_short_copy, &made->memory_) ==
                UCS_OK) {
                made->free_ = (uint64_t{1} << number_of_places) - 1;
            }
            known.store(made.release(), std::memory_order_release);
        }
        return known.load(std::memory_order_relaxed);
    } catch (const std::bad_alloc &) {
        return nullptr;
    }

    std::unique_ptr<gpu::memory> memory_;
    std::atomic<uint64_t> free_{0};  // a bit for each place
};

// cuda_copy's operations take any memory, though UCX gives them the CPU's.
bool is_on_host(gpu::memory_kind kind) noexcept {
    return kind == gpu::memory_kind::host || kind == gpu::memory_kind::pinned;
}

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

template <size_t instance>
struct led {
    static ucs_status_t put(uct_ep *ep, const void *from, unsigned length, uint64_t to,
                            uintptr_t rkey) {
        return copy_by_mover(gpu::direction::unpack, reinterpret_cast<char *>(to),
                             const_cast<char *>(static_cast<const char *>(from)), length)
                   ? UCS_OK
                   : originals_of[instance].put.load()(ep, from, length, to, rkey);
    }
    static ucs_status_t get(uct_ep *ep, void *to, unsigned length, uint64_t from, uintptr_t rkey) {
        return copy_by_mover(gpu::direction::pack, reinterpret_cast<char *>(from),
                             static_cast<char *>(to), length)
                   ? UCS_OK
                   : originals_of[instance].get.load()(ep, to, length, from, rkey);
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
    for_each_component(ucx, [&](uct_component *component) {
        const ucs_list_link &head = component->tl_list;
        for (ucs_list_link *link = head.next; link != &head; link = link->next) {
            auto *tl =
                reinterpret_cast<uct_tl *>(reinterpret_cast<char *>(link) - offsetof(uct_tl, list));
            if (std::strncmp(tl->name, "cuda_copy", sizeof(tl->name)) == 0) {
                found = tl;
            }
        }
    });
    return found;
}

}  // namespace

bool copy_by_mover(gpu::direction dir, char *on_gpu, char *on_host, size_t length) noexcept {
    gpu::platform &gpus = gpu::platform::instance();
    if (length == 0 || length > longest_short_copy || !is_on_host(gpus.query(on_host).kind)) {
        return false;
    }
    const gpu::memory_info memory = gpus.query(on_gpu);
    gpu::device *device =
        memory.kind == gpu::memory_kind::device &&
                memory.allocation.holds(reinterpret_cast<uintptr_t>(on_gpu), length)
            ? gpus.get_device(memory.device)
            : nullptr;
    if (device == nullptr || device->get_mover() == nullptr) {
        return false;
    }
    copy_places *places = copy_places::of(*device);
    char *place = places != nullptr ? places->take() : nullptr;
    if (place == nullptr) {
        return false;
    }
    if (dir == gpu::direction::unpack) {
        std::memcpy(place, on_host, length);
    }
    bool is_done = false;
    {
        gpu::given_orders order;
        if (order.give(*device, describe(dir, on_gpu, place, length), {true, true})) {
            is_done = order.await() == UCS_OK;
        } else {
            gpu::given_orders::launched_instead(*device);  // UCX's copy is the launch
        }
    }
    if (is_done && dir == gpu::direction::pack) {
        std::memcpy(on_host, place, length);
    }
    places->put_back(place);
    return is_done;
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
        tl->iface_open = ours.open;
    }
}

}  // namespace cuda_nc::uct
