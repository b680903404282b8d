// The choice of a backend, and the backend for machines without a GPU.
#include <pthread.h>

#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/gpu/backends.hpp"

namespace cuda_nc::gpu {
namespace {

class none_platform final : public platform {
  public:
    none_platform() = default;
    explicit none_platform(std::string why) noexcept : why_(std::move(why)) {}

    const char *name() const noexcept override { return "none"; }
    std::string why() const override {
        return forked() ? "this process was forked from one that had looked for GPUs" : why_;
    }
    int num_devices() const noexcept override { return 0; }
    device *get_device(int) noexcept override { return nullptr; }
    bool watch_ipc_conflicts(void (*)() noexcept) noexcept override { return false; }
    memory_info query(const void *) noexcept override { return {}; }

  private:
    std::string why_;
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
    if (choosing.load(std::memory_order_relaxed)) {
        is_forked.store(true, std::memory_order_relaxed);
        chosen.store(&fallback(), std::memory_order_release);
    }
}

// Registered when the library is loaded: a handler set while another thread forks might be missed.
[[maybe_unused]] const int registered = (fallback(), pthread_atfork(nullptr, nullptr, in_child));

std::unique_ptr<platform> make_cuda(std::string *why_p) noexcept {
#ifdef HAVE_CUDA
    return make_cuda_platform(why_p);
#else
    *why_p = "built without CUDA";
    return nullptr;
#endif
}

platform *choose() {
    const std::string &wanted = config().gpu;
    std::unique_ptr<platform> made;
    std::string why;
    if (wanted == "none") {
        why = "UCX_CUDA_NC_GPU=none";
    } else if (wanted == "sim") {
        made = make_sim_platform(&why);
    } else {
        made = make_cuda(&why);
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

platform &choose_once() noexcept {
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
