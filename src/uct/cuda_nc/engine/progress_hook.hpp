// A callback among those that UCX's worker calls when it progresses. It is there while anything is
// under way, and a while longer, because coming and going costs time.
#pragma once

#include "uct/cuda_nc/ucx/ucx.hpp"

namespace cuda_nc::uct {

class progress_hook {
  public:
    using callback = unsigned (*)(void *argument);

    // `worker` is UCX's.
    progress_hook(const ucx_api &ucx, void *worker, callback function, void *argument) noexcept
        : ucx_(ucx), worker_(worker), function_(function), argument_(argument) {}
    ~progress_hook() { stop(); }
    progress_hook(const progress_hook &) = delete;
    progress_hook &operator=(const progress_hook &) = delete;

    // Something is under way: the worker calls from now on.
    void start() noexcept;
    void stop() noexcept;

    // The callback found nothing to do. After many such calls the worker calls no more.
    void note_idle() noexcept;
    void note_busy() noexcept { idle_calls_ = 0; }

  private:
    const ucx_api &ucx_;
    void *const worker_;
    const callback function_;
    void *const argument_;
    int id_ = -1;  // UCX's, -1: not registered
    unsigned idle_calls_ = 0;
};

}  // namespace cuda_nc::uct
