// One of UCX's workers as far as a list_mover sees it, and an operation that a list ends.
#pragma once

#include "uct/cuda_nc/copy_bytes.hpp"
#include "uct/cuda_nc/one_sided/mover.hpp"

namespace cuda_nc::uct {

// Whether the mover wants the worker to call its progress.
inline bool is_registered = false;

inline ucx_api worker_calls() {
    ucx_api made = {};
    made.uct_worker_progress_register_safe = [](void *, unsigned (*)(void *), void *, unsigned,
                                                int *id_p) {
        is_registered = true;
        *id_p = 1;
    };
    made.uct_worker_progress_unregister_safe = [](void *, int *id_p) {
        is_registered = false;
        *id_p = -1;
    };
    return made;
}

// A put or get, and the byte at `watched` when it has ended.
struct operation {
    abi::uct_completion end = {};  // first: the callback knows no more
    const char *watched = nullptr;
    char seen = 0;

    operation() {
        end.count = 1;
        end.func = [](abi::uct_completion *self) {
            auto *one = reinterpret_cast<operation *>(self);
            if (one->watched != nullptr) {
                copy(&one->seen, one->watched, 1);
            }
        };
    }
    bool has_ended() const { return end.count == 0; }
};

}  // namespace cuda_nc::uct
