// Messages of one interface that go from GPU to GPU, and the requests of UCP that wait for them.
//
// All calls come from UCX with its worker locked; none waits for another process. While anything is
// under way it progresses with the worker.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "uct/cuda_nc/ucx/abi_memory.hpp"
#include "uct/cuda_nc/ucx/abi_parameters.hpp"
#include "uct/cuda_nc/protocol/direct.hpp"
#include "uct/cuda_nc/pipe/launches.hpp"
#include "uct/cuda_nc/pipe/side.hpp"
#include "uct/cuda_nc/memory/quarantine.hpp"
#include "uct/cuda_nc/protocol/request_finder.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"

namespace cuda_nc::uct {

struct interface;
struct endpoint;
struct region;
class put_slots;
class sending;
class receiving;

class traffic {
  public:
    explicit traffic(interface &iface) noexcept;
    ~traffic();  // waits for the GPUs' work

    // In place of the carrier's am_bcopy for rendezvous data. UCS_ERR_NO_RESOURCE may be ours: then
    // the next add_pending() for the endpoint holds the request.
    ssize_t send_rndv_data(endpoint &ep, abi::uct_pack_callback pack, void *arg,
                           unsigned flags) noexcept;
    // Before UCP sends this short message: offers go ahead of its RTS, answers ahead of its RTR.
    void before_short(endpoint &ep, uint8_t id, uint64_t header, const void *payload,
                      size_t length) noexcept;
    // Before UCP takes an RTS.
    void rts_comes(const void *data, size_t length) noexcept;
    // In place of the carrier's operations: a request waits here for a GPU, or there for room.
    ucs_status_t add_pending(endpoint &ep, void *request, unsigned flags) noexcept;
    void purge_pending(endpoint &ep, abi::function callback, void *arg) noexcept;
    // In place of the carrier's: after what is held here for the endpoint before, and every control
    // message to it.
    ucs_status_t flush(endpoint &ep, unsigned flags, abi::uct_completion *completion) noexcept;
    // Something waits here that the carrier does not know of.
    bool holds_back() const noexcept {
        return !held_.empty() || !unsent_.empty() || !flushes_.empty();
    }

    // Rendezvous data that carries our mark, and messages under our own id.
    void take_data(char *data, size_t length) noexcept;
    void take_control(const void *data, size_t length) noexcept;

    // The endpoint has learned whom it leads to, or is the one that is left.
    void meet(endpoint &ep) noexcept;
    // The endpoint goes away.
    void forget(endpoint &ep) noexcept;

    // Work is under way of which no event of the carrier will tell.
    bool is_busy() const noexcept;

    // ---- for messages

    void send_control(endpoint *ep, const wire::control &message) noexcept;
    // False: there is no room, and nothing was sent.
    bool send_at_once(endpoint &ep, const wire::control &message) noexcept;
    // To the author of message `to`: no GPU of ours writes any more for it.
    void say_ended(uint64_t interface, uint64_t to) noexcept;
    void say_cancel(endpoint *ep, uint64_t to, uint64_t from) noexcept;
    bool has_unsent(const endpoint *ep) const noexcept;
    interface &iface() const noexcept {
        return iface_;
    }
    // This process, as its peers know it.
    const process_id &process() const noexcept { return process_; }
    bool uses_pipes() const noexcept;
    uint64_t longest_segment() const noexcept { return longest_segment_; }
    // Channels for a kernel of one message, in the order of messages; then end_admission().
    // Channels of other workers, which may rest, are not waited for long.
    bool admit(uint64_t message, int device, gpu::direction dir, unsigned channels) noexcept;
    void stop_waiting(uint64_t message) noexcept;
    void one_is_settled(uint64_t message) noexcept;
    // A message's slots are at work, of which nobody tells.
    void one_is_polled() noexcept { polled_ = true; }
    void kernel_left(const pipe_drive &ended) noexcept { launches_.left(ended); }
    // Takes part in the launch that ends this call of progress, or the next; false: no memory.
    bool launch(pipe_drive &admitted) noexcept;
    void do_not_launch(const pipe_drive &stopped) noexcept { launches_.remove(stopped); }
    void launch_all() noexcept;
    size_t num_messages() const noexcept { return sends_.size() + receives_.size(); }
    bool has_one_message() const noexcept { return num_messages() == 1; }
    // A message that is alone does not wait for others to share a launch with.
    void launch_if_alone() noexcept {
        if (has_one_message()) {
            launch_all();
        }
    }
    void end_admission(int device, gpu::direction dir, unsigned channels) noexcept;
    // Gives `side` back when the receiver has said that it writes there no more, or is gone.
    void await_end(pipe_side *side, message_of_peer message, const endpoint *ep,
                   const process_id &receiver) noexcept;
    // Keeps `slots` until the carrier has moved what is under way, and then says cancel to the
    // message `to` unless that or `ep` is null.
    void await_puts(std::unique_ptr<put_slots> slots, endpoint *ep, uint64_t to,
                    uint64_t from) noexcept;
    // A sender on another host, who has fallen silent, may still write there.
    void keep_until_closed(const region &memory) noexcept;
    std::unique_ptr<gpu::event> take_event(int device) noexcept;  // null: out of resources
    void give_event(int device, std::unique_ptr<gpu::event> back) noexcept;
    void erase(sending &ended) noexcept;
    void erase(receiving &ended) noexcept;
    // UCP's handler of rendezvous data; what it calls may erase any message.
    void deliver(void *data, size_t length, unpack_call &call) noexcept;

    // For tests: bytes of a segment at most, in messages to come.
    void set_longest_segment(uint64_t bytes) noexcept { longest_segment_ = bytes; }

  private:
    friend class offering;

    using purge_callback = void (*)(void *request, void *arg);
    struct held_request {
        endpoint *ep;
        void *request;
        uint64_t message;
        uint64_t place;  // among all that UCP gave, in its order
    };
    struct carried_request;
    struct held_flush {
        endpoint *ep;
        unsigned flags;
        abi::uct_completion *completion;
        uint64_t place;  // behind requests at lower ones
    };
    struct early_offer {
        uint64_t message, total;
        wire::early_terms terms;
        bool has_rts = false;
    };
    // By which the other side's message ends, or its memory comes back to it.
    struct last_word {
        wire::control_kind kind;
        uint64_t to, from;
    };
    struct ending_side {
        pipe_side *side;
        uint64_t peer;
        const endpoint *ep;
        process_id receiver;
    };
    struct leaving_puts {
        std::unique_ptr<put_slots> slots;
        endpoint *ep;
        uint64_t to, from;
    };
    struct unsent_control {
        endpoint *ep;
        wire::control message;
    };
    // One direction on one GPU.
    struct channel_queue {
        unsigned own = 0;            // channels that messages of ours have
        std::set<uint64_t> waiting;  // messages
        uint64_t refused = 0;        // the first in line
        std::chrono::steady_clock::time_point since;

        bool is_overdue(uint64_t first) noexcept;
    };

    bool hold(endpoint &ep, void *request, uint64_t place) noexcept;
    ucs_status_t add_at(uint64_t place, endpoint &ep, void *request, unsigned flags) noexcept;
    static ucs_status_t dispatch_carried(carried_request *carried) noexcept;
    static void purge_carried(carried_request *carried, void *purge) noexcept;
    static unsigned progress_all(void *self) noexcept;
    unsigned progress() noexcept;
    unsigned progress_one(uint64_t message) noexcept;
    unsigned progress_every() noexcept;
    unsigned progress_in_flight() noexcept;
    unsigned progress_waiting() noexcept;
    unsigned progress_puts() noexcept;
    void keep_puts() noexcept;
    bool holds_back(const endpoint &ep, uint64_t place) const noexcept;
    unsigned progress_flushes() noexcept;
    void end_flushes(const endpoint &ep, ucs_status_t status) noexcept;
    unsigned send_unsent() noexcept;
    void drop_unsent(const endpoint &ep) noexcept;
    void release(size_t index) noexcept;
    unsigned release_held(bool all) noexcept;
    bool has_settled(uint64_t message) const noexcept;
    bool try_control(endpoint &ep, const wire::control &message) noexcept;
    void start_progress() noexcept;
    void stop_progress() noexcept;
    void take_offer(const wire::data_prefix &prefix, char *message, size_t length) noexcept;
    // `first`: bytes of the message that are there. `request`: UCP's, of the receive.
    bool accept(endpoint &ep, direct_end *end, uint64_t message, uint64_t total,
                const wire::early_terms &terms, uint64_t first, uint64_t request) noexcept;
    void accept_or_decline(endpoint &ep, direct_end *end, uint64_t message, uint64_t total,
                           const wire::early_terms &terms, uint64_t first,
                           uint64_t request) noexcept;
    void take_early(const wire::control &message) noexcept;
    void withdraw(const wire::control &message) noexcept;
    bool is_accepted(const endpoint &ep, uint64_t message) const noexcept;
    void take_rest(const wire::data_prefix &prefix, const char *message, size_t length) noexcept;

    sending *find_send(message_of_peer message) const noexcept;
    receiving *find_receive(message_of_peer message) const noexcept;
    void ended(message_of_peer message) noexcept;
    void answer_late(const wire::control &answer) noexcept;
    void tell(uint64_t interface, const last_word &what) noexcept;
    void keep_unsaid(uint64_t interface, const last_word &what) noexcept;

    interface &iface_;
    const process_id process_;
    request_finder requests_;
    uint64_t longest_segment_ = gpu::max_pipe_length;
    // By number: in the order in which they began.
    std::map<uint64_t, std::unique_ptr<sending>> sends_;
    std::map<uint64_t, std::unique_ptr<receiving>> receives_;
    std::map<uint64_t, ending_side> ending_;
    std::vector<leaving_puts> puts_;  // of messages that have gone another way
    pipe_launches launches_;
    // By UCP's number of the send, and the sender's interface.
    std::map<std::pair<uint64_t, uint64_t>, early_offer> early_;
    std::multimap<uint64_t, last_word> unsaid_;  // by the addressee's interface
    std::map<std::pair<int, gpu::direction>, channel_queue> channels_;
    bool channels_are_free_ = false;  // since those that wait were last told
    bool looks_at_all_held_ = false;
    std::vector<uint64_t> settled_;  // messages that requests may be held for
    bool polled_ = false;            // some messages are seen to go on by polls alone
    unsigned rounds_ = 0;
    std::vector<held_request> held_;
    std::vector<held_flush> flushes_;
    uint64_t next_place_ = 0;
    std::deque<unsent_control> unsent_;
    std::vector<std::pair<int, std::unique_ptr<gpu::event>>> events_;
    endpoint *refused_ = nullptr;  // the last call on it was refused for the sake of `refused_for_`
    uint64_t refused_for_ = 0;
    int progress_id_ = -1;
    unsigned idle_rounds_ = 0;
};

// Not used twice in a process; never 0.
uint64_t next_message_id() noexcept;

}  // namespace cuda_nc::uct
