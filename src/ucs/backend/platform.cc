// Chooses the backend; the backend for machines without a GPU.
#include <pthread.h>

#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/backend/backends.hpp"
#include "ucs/gpu/mover_pulse.hpp"

namespace cuda_nc::gpu {
namespace {

class none_platform final : public platform {
  public:
    none_platform() = default;
    explicit none_platform(std::string why, std::unique_ptr<platform> unused = nullptr) noexcept
        : why_(std::move(why)), unused_(std::move(unused)) {}

    const char *name() const noexcept override { return "none"; }
    std::string why() const override {
        return forked() ? "this process was forked from one that had looked for GPUs" : why_;
    }
    int num_devices() const noexcept override { return 0; }
    device *get_device(int) noexcept override { return nullptr; }
    bool watch_ipc_conflicts(void (*)() noexcept) noexcept override { return false; }
    bool sees_gpu_memory() const noexcept override {
        return unused_ != nullptr && unused_->sees_gpu_memory();
    }
    memory_info query(const void *address) noexcept override {
        return unused_ != nullptr ? unused_->query(address) : memory_info();
    }
    int device_of(const void *) noexcept override { return -1; }

  private:
    std::string why_;
    std::unique_ptr<platform> unused_;  // null, or has no devices but recognises GPU memory
};

std::atomic<platform *> chosen{nullptr};
std::atomic<bool> choosing{false};
std::atomic<bool> is_forked{false};

// Never destroyed: others may ask during exit.
platform &fallback() noexcept {
    alignas(none_platform) static char storage[sizeof(none_platform)];
    static platform *only = new (storage) none_platform;
    return *only;
}

void in_child() noexcept {
    forget_pulses();
    if (choosing.load(std::memory_order_relaxed)) {
        is_forked.store(true, std::memory_order_relaxed);
        chosen.store(&fallback(), std::memory_order_release);
    }
}

// Registered when the library is loaded: a fork on another thread could miss a handler that is set
// later.
[[maybe_unused]] const int registered = (fallback(), pthread_atfork(nullptr, nullptr, in_child));

std::unique_ptr<platform> make_cuda(bool used, std::string *why_p) noexcept {
#ifdef HAVE_CUDA
    return make_cuda_platform(used, why_p);
#else
    (void)used;
    *why_p = "built without CUDA";
    return nullptr;
#endif
}

platform *choose() {
    const std::string &wanted = config().gpu;
    std::unique_ptr<platform> made;
    std::string why;
    if (wanted == "none") {
        // Other code may use the GPUs, whose memory must not be taken for host memory.
        std::unique_ptr<platform> unused = make_cuda(false, &why);
        made.reset(new none_platform("UCX_CUDA_NC_GPU=none", std::move(unused)));
    } else if (wanted == "sim") {
        made = make_sim_platform(&why);
    } else {
        made = make_cuda(true, &why);
    }
    if (made == nullptr) {
        if (wanted == "sim" || wanted == "cuda") {
            nc_warn("UCX_CUDA_NC_GPU=%s cannot be served: %s", wanted.c_str(), why.c_str());
        }
        made.reset(new none_platform(std::move(why)));
    }
    nc_debug("GPU backend %s: %s", made->name(), made->why().c_str());
    return made.release();
}

// Not part of instance(), which is called several times for each message.
__attribute__((noinline)) platform &choose_once() noexcept {
    static std::mutex mutex;
    choosing.store(true, std::memory_order_relaxed);
    std::lock_guard<std::mutex> guard(mutex);
    platform *known = chosen.load(std::memory_order_acquire);
    if (known == nullptr) {
        try {
            known = choose();
        } catch (...) {
            known = &fallback();
        }
        chosen.store(known, std::memory_order_release);
    }
    return *known;
}

}  // namespace

bool forked() noexcept {
    return is_forked.load(std::memory_order_relaxed);
}

platform &platform::instance() noexcept {
    platform *known = chosen.load(std::memory_order_acquire);
    return known != nullptr ? *known : choose_once();
}

}  // namespace cuda_nc::gpu
