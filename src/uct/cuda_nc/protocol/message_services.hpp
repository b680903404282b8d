// What the direct messages of one interface share, and use to do their work. Made by
// direct_messages, which outlives every message.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "ucs/gpu/pipe.hpp"
#include "uct/cuda_nc/engine/agenda.hpp"
#include "uct/cuda_nc/engine/event_pool.hpp"
#include "uct/cuda_nc/engine/pending_requests.hpp"
#include "uct/cuda_nc/engine/progress_hook.hpp"
#include "uct/cuda_nc/engine/scheduler.hpp"
#include "uct/cuda_nc/memory/process_id.hpp"
#include "uct/cuda_nc/pipe/unreturned_ports.hpp"
#include "uct/cuda_nc/protocol/control_channel.hpp"
#include "uct/cuda_nc/protocol/fragment_receives.hpp"
#include "uct/cuda_nc/protocol/message_table.hpp"
#include "uct/cuda_nc/protocol/request_endpoints.hpp"
#include "uct/cuda_nc/protocol/unanswered_sends.hpp"
#include "uct/cuda_nc/protocol/unfinished_puts.hpp"
#include "uct/cuda_nc/protocol/unsent_rtrs.hpp"

namespace cuda_nc::uct {

struct unpack_call;

struct message_services {
    message_services(interface &its_iface, progress_hook::callback function,
                     void *argument) noexcept;

    interface &iface;
    const process_id process = own_process_id();  // as its peers know it
    progress_hook progress;
    message_table messages;
    agenda looks{messages, progress};
    control_channel control{iface, progress, looks};
    scheduler schedule{messages, progress};
    pending_requests pending{messages, progress};
    unfinished_puts puts{control, progress};
    unreturned_ports ports;
    unanswered_sends unanswered;
    event_pool events;
    unsent_rtrs rtrs{looks};
    request_endpoints endpoints_of_requests;
    fragment_receives fragments{iface, endpoints_of_requests};

    unsigned calls = 0;  // of progress, so far

    // Calls of UCP's in which it sends an RTR: its request must not end inside one.
    unsigned rtr_calls = 0;

    // Between looks for the senders of receives that last.
    std::chrono::milliseconds between_looks{4000};

    // Bytes of a pipe's segment at most, in messages to come.
    uint64_t longest_segment = gpu::max_pipe_length;

    // What a mover's kernel takes begins now, or soon where there are many. A message that is alone
    // does not wait for others to share a launch with.
    void launch_early() noexcept {
        if (messages.size() == 1) {
            schedule.launch_all();
        } else {
            schedule.give_early();
        }
    }
};

// Calls UCP's handler of active message `id`. What it calls may end any message.
ucs_status_t deliver_to_ucp(interface &iface, uint8_t id, void *data, size_t length) noexcept;

// Calls UCP's handler of rendezvous data with `call` current. What it calls may end any message.
void deliver_rndv_data(interface &iface, void *data, size_t length, unpack_call &call) noexcept;

// Whether pipes and pulls are switched on, and launches return before their kernels have left.
bool uses_pipes() noexcept;

}  // namespace cuda_nc::uct
