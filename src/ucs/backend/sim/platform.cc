// The simulated devices, their memory, and the platform made of them.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "ucs/base/bits.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/backend/backends.hpp"
#include "ucs/backend/sim/arena.hpp"
#include "ucs/backend/sim/ipc.hpp"
#include "ucs/backend/sim/mover.hpp"
#include "ucs/backend/sim/options.hpp"
#include "ucs/backend/sim/stream.hpp"
#include "ucs/backend/sim/user_stream.hpp"

namespace cuda_nc::gpu::sim {
namespace {

class device_memory final : public memory {
  public:
    device_memory(address_space &space, arena &from) noexcept : space_(space), from_(from) {}
    ~device_memory() override {
        if (address_ != nullptr && !forked()) {
            auto begin = reinterpret_cast<uintptr_t>(address_);
            space_.remove(begin);
            from_.release(begin, size_);
        }
    }

    ucs_status_t allocate(size_t size, int ordinal) {
        region one;
        ucs_status_t status = from_.allocate(size, &one.begin);
        if (status != UCS_OK) {
            return status;
        }
        one.end = one.begin + size;
        one.alias = from_.alias(one.begin);
        one.kind = memory_kind::device;
        one.device = ordinal;
        one.everywhere = false;
        try {
            space_.add(one);
        } catch (...) {
            from_.release(one.begin, size);
            throw;
        }
        address_ = reinterpret_cast<char *>(one.begin);
        size_ = size;
        return UCS_OK;
    }

  private:
    address_space &space_;
    arena &from_;
};

// Memory that the CPU may touch: pinned, or managed, in blocks of the GPU's.
class open_memory final : public memory {
  public:
    explicit open_memory(address_space &space) noexcept : space_(space) {}
    ~open_memory() override {
        if (address_ == nullptr || forked()) {
            return;
        }
        space_.remove(reinterpret_cast<uintptr_t>(address_));
        munmap(mapping_, mapped_);
    }

    ucs_status_t allocate(size_t size, memory_kind kind, int ordinal) {
        const bool has_blocks = kind == memory_kind::managed;
        size_ = size;
        mapped_ = has_blocks ? reserved_bytes(size) : std::max<size_t>(size, 1);
        mapping_ =
            mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapping_ == MAP_FAILED) {
            return UCS_ERR_NO_MEMORY;
        }
        const auto start = reinterpret_cast<uintptr_t>(mapping_);
        region one;
        one.begin = one.alias = has_blocks ? round_up(start, gpu_block) : start;
        one.end = one.begin + size;
        one.kind = kind;
        one.device = ordinal;
        one.shared = sharing::none;
        try {
            space_.add(one);
        } catch (...) {
            munmap(mapping_, mapped_);
            throw;
        }
        address_ = reinterpret_cast<char *>(one.begin);
        return UCS_OK;
    }

  private:
    address_space &space_;
    void *mapping_ = nullptr;
    size_t mapped_ = 0;  // bytes
};

// Pages of somebody else's that count as pinned.
class pinned_pages final : public memory {
  public:
    pinned_pages(address_space &space, void *address, size_t size) : space_(space) {
        region one;
        one.begin = one.alias = reinterpret_cast<uintptr_t>(address);
        one.end = one.begin + size;
        one.kind = memory_kind::pinned;
        space_.add(one);
        address_ = static_cast<char *>(address);
        size_ = size;
    }
    ~pinned_pages() override {
        if (!forked()) {
            space_.remove(reinterpret_cast<uintptr_t>(address_));
        }
    }

  private:
    address_space &space_;
};

class sim_device final : public device {
  public:
    sim_device(environment &all, const options &how, int ordinal, std::unique_ptr<arena> own)
        : all_(all), how_(how), arena_(std::move(own)) {
        char bus_id[32];
        std::snprintf(bus_id, sizeof(bus_id), "5150:%02x:00.0", static_cast<unsigned>(ordinal));
        properties_.name = "simulated GPU";
        properties_.ordinal = ordinal;
        properties_.num_sms = 4;
        properties_.memory_size = how.memory;
        properties_.l2_size = size_t(1) << 20;
        properties_.bus_id = bus_id;
        all_.space.add_range(ordinal, arena_->begin(), arena_->end());
    }

    const device_properties &properties() const noexcept override { return properties_; }

    ucs_status_t allocate(size_t size, std::unique_ptr<memory> *memory_p) noexcept override {
        return make(fault::alloc, memory_p, [&] {
            auto made = std::make_unique<device_memory>(all_.space, *arena_);
            ucs_status_t status = made->allocate(size, properties_.ordinal);
            return std::pair(status, std::move(made));
        });
    }

    ucs_status_t allocate_pinned(size_t size, std::unique_ptr<memory> *memory_p) noexcept override {
        return make(fault::pinned, memory_p, [&] {
            auto made = std::make_unique<open_memory>(all_.space);
            ucs_status_t status = made->allocate(size, memory_kind::pinned, -1);
            return std::pair(status, std::move(made));
        });
    }

    ucs_status_t allocate_managed(size_t size, std::unique_ptr<memory> *memory_p) noexcept {
        return make(fault::alloc, memory_p, [&] {
            auto made = std::make_unique<open_memory>(all_.space);
            ucs_status_t status = made->allocate(size, memory_kind::managed, properties_.ordinal);
            return std::pair(status, std::move(made));
        });
    }

    ucs_status_t pin(void *address, size_t size,
                     std::unique_ptr<memory> *memory_p) noexcept override {
        region known;
        if (all_.space.find(address, 1, &known)) {
            return UCS_ERR_UNSUPPORTED;
        }
        return make(fault::pin, memory_p, [&] {
            return std::pair(UCS_OK, std::make_unique<pinned_pages>(all_.space, address, size));
        });
    }

    ucs_status_t create_stream(std::unique_ptr<stream> *stream_p) noexcept override {
        return make(fault::stream, stream_p, [&] {
            return std::pair(UCS_OK, std::make_unique<sim_stream>(all_, properties_.ordinal));
        });
    }

    ucs_status_t create_event(std::unique_ptr<event> *event_p) noexcept override {
        return make(fault::event, event_p,
                    [&] { return std::pair(UCS_OK, std::make_unique<sim_event>()); });
    }

    ucs_status_t borrow_stream(void *foreign,
                               std::unique_ptr<borrowed_stream> *stream_p) noexcept override {
        if (forked()) {
            return UCS_ERR_IO_ERROR;
        }
        try {
            auto *wanted = static_cast<user_stream *>(foreign);
            return borrow(wanted != nullptr ? wanted : default_stream(), properties_.ordinal,
                          stream_p);
        } catch (const std::bad_alloc &) {
            return UCS_ERR_NO_MEMORY;
        }
    }

    // A stream of the application's.
    std::shared_ptr<user_stream> make_user_stream() {
        return user_stream::make(all_, properties_.ordinal);
    }
    // That of the application's null streams.
    user_stream *default_stream() {
        std::call_once(default_once_, [this] { default_stream_ = make_user_stream(); });
        return default_stream_.get();
    }

    ucs_status_t ipc_export(const void *address, ipc_handle *handle_p,
                            size_t *offset_p) noexcept override {
        region one;
        if (forked() || !all_.space.find(address, 1, &one) || one.device != properties_.ordinal ||
            one.everywhere || one.shared != sharing::by_handle) {
            return UCS_ERR_UNSUPPORTED;
        }
        *offset_p = reinterpret_cast<uintptr_t>(address) - one.begin;
        return export_region(one, arena_->fd(), one.begin - arena_->begin(), handle_p);
    }

    ucs_status_t ipc_share(char *base, size_t size, ipc_handle *handle_p,
                           std::shared_ptr<void> *keeper_p) noexcept override {
        region one;
        if (forked() || size == 0 || !all_.space.find(base, size, &one) ||
            one.device != properties_.ordinal || one.shared != sharing::by_descriptor) {
            return UCS_ERR_UNSUPPORTED;
        }
        one.begin = reinterpret_cast<uintptr_t>(base);
        one.end = one.begin + size;
        return share_region(one, arena_->fd(), one.begin - arena_->begin(), handle_p, keeper_p);
    }

    bool ipc_coexists(const ipc_handle &handle) const noexcept override {
        return is_of_pieces(handle);
    }
    ucs_status_t ipc_open(const ipc_handle &handle,
                          std::unique_ptr<memory> *memory_p) noexcept override {
        if (forked() || all_.faults.strikes(fault::ipc_open)) {
            return UCS_ERR_IO_ERROR;
        }
        return open_region(handle, all_.space, memory_p);
    }

    bool copies_rows() const noexcept override { return true; }
    mover *get_mover() noexcept override {
        if (forked() || how_.mover_idle == 0) {
            return nullptr;
        }
        std::call_once(mover_once_,
                       [this]() noexcept { mover_ = sim_mover::make(*this, all_, how_); });
        return mover_.get();
    }
    bool can_access_peer(int ordinal) const noexcept override {
        return ordinal >= 0 && static_cast<unsigned>(ordinal) < how_.devices;
    }

  private:
    // What every creation has in common; `how` returns a status and the new object.
    template <typename T, typename F>
    ucs_status_t make(fault which, std::unique_ptr<T> *result_p, F &&how) noexcept {
        if (forked()) {
            return UCS_ERR_IO_ERROR;
        }
        if (all_.faults.strikes(which)) {
            return UCS_ERR_NO_MEMORY;
        }
        try {
            auto [status, made] = how();
            if (status == UCS_OK) {
                *result_p = std::move(made);
            }
            return status;
        } catch (const std::bad_alloc &) {
            return UCS_ERR_NO_MEMORY;
        }
    }

    environment &all_;
    const options how_;
    std::unique_ptr<arena> arena_;
    device_properties properties_;
    std::once_flag default_once_;
    std::shared_ptr<user_stream> default_stream_;
    std::once_flag mover_once_;
    std::unique_ptr<sim_mover> mover_;  // its thread ends before the memory does
};

class sim_platform final : public platform {
  public:
    const char *name() const noexcept override { return "sim"; }
    std::string why() const override {
        return std::to_string(devices_.size()) + " simulated GPUs (UCX_CUDA_NC_GPU=sim)";
    }
    int num_devices() const noexcept override {
        return forked() ? 0 : static_cast<int>(devices_.size());
    }
    device *get_device(int ordinal) noexcept override {
        return ordinal >= 0 && ordinal < num_devices()
                   ? devices_[static_cast<size_t>(ordinal)].get()
                   : nullptr;
    }
    bool sees_gpu_memory() const noexcept override { return !forked(); }
    bool watch_ipc_conflicts(void (*)() noexcept) noexcept override { return true; }

    memory_info query(const void *address) noexcept override {
        return forked() ? memory_info() : all_.space.query(address);
    }
    int device_of(const void *address) noexcept override {
        const memory_info found = query(address);
        return found.kind == memory_kind::device ? found.device : -1;
    }

    bool start(const options &how, std::string *why_p) {
        if (!all_.faults.parse(how.faults, why_p)) {
            return false;
        }
        all_.delay = how.delay;
        all_.seed = how.seed;
        for (unsigned i = 0; i < how.devices; ++i) {
            std::unique_ptr<arena> own = arena::make(how.memory);
            if (own == nullptr) {
                *why_p = "no address range of " + std::to_string(how.memory) +
                         " bytes for a simulated GPU";
                return false;
            }
            devices_.push_back(
                std::make_unique<sim_device>(all_, how, static_cast<int>(i), std::move(own)));
        }
        return true;
    }

    address_space &space() noexcept { return all_.space; }

    sim_device *find(int ordinal) noexcept {
        return static_cast<sim_device *>(get_device(ordinal));
    }

  private:
    environment all_;
    std::vector<std::unique_ptr<sim_device>> devices_;
};

// The address by which the CPU may touch `address`.
char *reachable(const address_space &space, const void *address, size_t length) noexcept {
    region one;
    if (space.find(address, length, &one)) {
        return one.at(reinterpret_cast<uintptr_t>(address));
    }
    if (space.query(address).kind != memory_kind::host) {
        nc_error("simulated GPU: a copy of %zu bytes at %p leaves its allocation", length, address);
        std::abort();
    }
    return static_cast<char *>(const_cast<void *>(address));
}

}  // namespace

void copy_now(platform &on, void *destination, const void *source, size_t length) noexcept {
    if (length != 0) {
        const address_space &space = static_cast<sim_platform &>(on).space();
        std::memmove(reachable(space, destination, length), reachable(space, source, length),
                     length);
    }
}

std::shared_ptr<user_stream> make_user_stream(platform &on, int ordinal) {
    sim_device *where = static_cast<sim_platform &>(on).find(ordinal);
    return where != nullptr ? where->make_user_stream() : nullptr;
}

user_stream *default_stream(platform &on, int ordinal) {
    sim_device *where = static_cast<sim_platform &>(on).find(ordinal);
    return where != nullptr ? where->default_stream() : nullptr;
}

ucs_status_t allocate_managed(platform &on, int ordinal, size_t size,
                              std::unique_ptr<memory> *memory_p) noexcept {
    sim_device *where = static_cast<sim_platform &>(on).find(ordinal);
    return where != nullptr ? where->allocate_managed(size, memory_p) : UCS_ERR_NO_DEVICE;
}

void set_sharing(platform &on, const void *address, sharing how, size_t piece) noexcept {
    static_cast<sim_platform &>(on).space().set_sharing(reinterpret_cast<uintptr_t>(address), how,
                                                        piece);
}

void add_unknown(platform &on, void *address, size_t size) {
    region one;
    one.begin = one.alias = reinterpret_cast<uintptr_t>(address);
    one.end = one.begin + size;
    one.kind = memory_kind::unknown;
    static_cast<sim_platform &>(on).space().add(one);
}

std::unique_ptr<platform> make_platform(const options &how, std::string *why_p) {
    auto made = std::make_unique<sim_platform>();
    if (!made->start(how, why_p)) {
        return nullptr;
    }
    return made;
}

}  // namespace cuda_nc::gpu::sim

namespace cuda_nc::gpu {

std::unique_ptr<platform> make_sim_platform(std::string *why_p) noexcept {
    try {
        const settings &set = config();
        sim::options how;
        how.devices = set.sim_devices;
        how.memory = set.sim_memory;
        how.delay = set.sim_delay;
        how.seed = set.sim_seed;
        how.faults = set.sim_faults;
        how.mover_idle = set.mover ? std::max(set.mover_idle, 1u) : 0;
        return sim::make_platform(how, why_p);
    } catch (...) {
        return nullptr;
    }
}

}  // namespace cuda_nc::gpu
