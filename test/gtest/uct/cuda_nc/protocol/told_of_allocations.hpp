// A UCX whose memory hooks a test plays.
#pragma once

#include "ucs/base/ucx_instance.hpp"
#include "uct/cuda_nc/protocol/gpu_preparation.hpp"

namespace cuda_nc::uct {

using handler = void (*)(int, void *, void *);

struct registration {
    int number = 0, events = 0, priority = 0;
    handler callback = nullptr;
};
inline registration registered;

inline ucs_status_t note_registration(int events, int priority, handler callback, void *) {
    registered = {registered.number + 1, events, priority, callback};
    return UCS_OK;
}
inline ucs_status_t refuse(int, int, handler, void *) {
    ++registered.number;
    return UCS_ERR_UNSUPPORTED;
}

// Of a UCX that no other test names: each is asked once.
inline ucx_api ucx_with(ucs_status_t (*set)(int, int, handler, void *)) {
    static unsigned instance = max_ucx_instances;
    ucx_api made = {};
    made.instance = --instance;
    made.ucm_set_event_handler = set;
    registered = {};
    return made;
}

}  // namespace cuda_nc::uct
