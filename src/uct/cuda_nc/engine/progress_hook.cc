#include "uct/cuda_nc/engine/progress_hook.hpp"

namespace cuda_nc::uct {

void progress_hook::start() noexcept {
    idle_calls_ = 0;
    if (id_ == -1) {
        ucx_.uct_worker_progress_register_safe(worker_, function_, argument_, 0, &id_);
    }
}

void progress_hook::stop() noexcept {
    if (id_ != -1) {
        ucx_.uct_worker_progress_unregister_safe(worker_, &id_);
        id_ = -1;
    }
}

void progress_hook::note_idle() noexcept {
    constexpr unsigned most_idle_calls = 1000;
    if (++idle_calls_ == most_idle_calls) {
        stop();
    }
}

}  // namespace cuda_nc::uct
