// The direct messages of one interface: messages that go from GPU to GPU, and UCP's requests that
// wait for them. UCX's calls come in here, through the interface (iface.cc) and its endpoints
// (ep.cc), and are passed on to the messages and to the engine.
//
// All calls come with UCX's worker locked; none waits for another process. While anything is under
// way it progresses with the worker.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ucs/base/compiler.hpp"
#include "ucs/base/status.hpp"
#include "uct/cuda_nc/engine/alarm.hpp"
#include "uct/cuda_nc/engine/flush_queue.hpp"
#include "uct/cuda_nc/memory/later_looks.hpp"
#include "uct/cuda_nc/protocol/early_offers.hpp"
#include "uct/cuda_nc/protocol/message_services.hpp"
#include "uct/cuda_nc/protocol/plain_memory.hpp"
#include "uct/cuda_nc/protocol/request_finder.hpp"
#include "uct/cuda_nc/ucx/abi_parameters.hpp"

namespace cuda_nc::uct {

class direct_messages {
  public:
    explicit direct_messages(interface &iface) noexcept;
    ~direct_messages();  // waits for the GPUs' work

    // ---- what UCP sends

    // In place of the carrier's am_bcopy for rendezvous data. UCS_ERR_NO_RESOURCE may be ours: then
    // the next add_pending() for the endpoint holds the request until its message is decided.
    ssize_t send_rndv_data(endpoint &ep, abi::uct_pack_callback pack, void *arg,
                           unsigned flags) noexcept;
    // In place of the carrier's am_short and am_bcopy for RTS, RTR and ATS: early offers go with an
    // RTS, answers to them ahead of an RTR.
    ucs_status_t send_rendezvous_short(endpoint &ep, uint8_t id, uint64_t header,
                                       const void *payload, unsigned length) noexcept;
    ssize_t send_rendezvous(endpoint &ep, uint8_t id, abi::uct_pack_callback pack, void *arg,
                            unsigned flags) noexcept;
    // In place of the carrier's operations, with their contracts.
    ucs_status_t add_pending(endpoint &ep, void *request, unsigned flags) noexcept {
        return services_.pending.add(ep, request, flags);
    }
    void purge_pending(endpoint &ep, pending_requests::purge_callback callback,
                       void *argument) noexcept {
        services_.pending.purge(ep, callback, argument);
    }
    ucs_status_t flush(endpoint &ep, unsigned flags, abi::uct_completion *completion) noexcept {
        return flushes_.flush(ep, flags, completion);
    }
    // Something waits here that the carrier does not know of.
    bool holds_back() const noexcept {
        return !services_.pending.empty() || !services_.control.empty() || !flushes_.empty();
    }

    // ---- what arrives

    // UCP's RTS by itself, before UCP sees it.
    void handle_rts(const void *data, size_t length) noexcept { early_.handle_rts(data, length); }
    // UCP's ATS, before UCP sees it.
    void handle_ats(const void *data, size_t length) noexcept {
        if (CUDA_NC_UNLIKELY(!services_.messages.empty())) {
            end_send(data, length);
        }
    }
    // Rendezvous data that carries our mark.
    void handle_data(char *data, size_t length) noexcept;
    // An RTS that has an offer with it goes on to UCP.
    void handle_control(void *data, size_t length) noexcept;

    // ---- endpoints

    // `ep` leads to the peer ep.peer from now on.
    void endpoint_connected(endpoint &ep) noexcept { services_.control.endpoint_connected(ep); }
    void endpoint_closed(endpoint &ep) noexcept;

    // Work is under way of which no event of the carrier will tell.
    bool is_busy() const noexcept;

    // ---- a worker that sleeps

    // What the interface's descriptor is, where its carrier's is `carriers`.
    int descriptor(int carriers) noexcept { return alarm_.stand_in_front_of(carriers); }
    // The worker is about to sleep until the descriptor can be read. False: it must not, but
    // progress.
    bool fall_asleep() noexcept;
    // It must progress, but sleeps: it is woken soon. False: nobody will wake it.
    bool take_a_nap() noexcept { return alarm_.set(std::chrono::milliseconds(1)); }

    message_services &services() noexcept { return services_; }

    // How many messages, offers and looks for processes endpoint_closed() has met so far.
    uint64_t closing_steps() const noexcept { return closing_steps_ + early_.swept(); }

  private:
    static unsigned progress(void *self) noexcept;
    unsigned progress() noexcept;
    unsigned gather() noexcept;
    void handle_offer(const wire::data_prefix &prefix, char *message, size_t length) noexcept;
    void handle_fin(const wire::data_prefix &prefix, const char *message, size_t length) noexcept;
    void handle_sender_control(send_message *send, const wire::control &message) noexcept;
    enum class leaving : uint8_t {
        now,
        later,  // the carrier has no room for what goes with it or ahead: UCP shall ask again
        never   // it has left with an offer, or ATS is to go in its place: UCP shall think it is
                // sent
    };
    static leaving leaving_after(ucs_status_t announced) noexcept;
    // `length`: bytes of UCP's message, of which the structure has the first.
    leaving before(endpoint &ep, uint8_t id, const void *message, size_t length) noexcept;
    // What the carrier said of it, or UCP is to hear, which it returns. Negative: an error.
    ssize_t after(endpoint &ep, uint8_t id, const void *message, size_t length,
                  ssize_t sent) noexcept;
    leaving before_rts(endpoint &ep, const wire::rts_head &rts, const void *bytes, size_t length);
    leaving before_plain_rts(endpoint &ep, const wire::rts_head &rts, const void *bytes,
                             size_t length);
    bool can_announce(size_t rts_length) const noexcept;
    leaving before_rtr(endpoint &ep, const wire::rtr_head &rtr, size_t length);
    void handle_announcement(char *message, size_t length) noexcept;
    void note_untaken(endpoint &ep) noexcept;
    void rtr_has_left(endpoint &ep, const wire::rtr_head &rtr) noexcept;
    void ask_for_descriptions(endpoint &ep, bool wanted) noexcept;
    // Null: the receive is not into contiguous memory of a GPU.
    std::unique_ptr<plain_memory> find_plain(const wire::rtr_head &rtr) const noexcept;
    bool accept_plain(endpoint &ep, const early_offers::entry &offer, const wire::rtr_head &rtr);
    void end_send(const void *ats, size_t length) noexcept;
    // What became of an offer.
    enum class outcome : uint8_t {
        declined,  // the receive is not ours, or out of resources
        accepted,
        holds_rtr  // accepted, and UCP's RTR is held back
    };
    // Message `message` of `ep`'s peer (0: contiguous memory), of `total` bytes: `first` of them
    // have come with the offer. UCP calls the receive `request`. `rtr`: it may be held back; null:
    // it has gone.
    outcome accept(endpoint &ep, user_buffer *buffer, uint64_t message, uint64_t total,
                   const wire::early_offer &offer, uint64_t first, uint64_t request,
                   const wire::rtr_head *rtr) noexcept;
    // Tells the sender, where it is declined.
    outcome accept_or_decline(endpoint &ep, user_buffer *buffer, uint64_t message, uint64_t total,
                              const wire::early_offer &offer, uint64_t first, uint64_t request,
                              const wire::rtr_head *rtr) noexcept;

    void look_for_the_gone() noexcept;
    bool awaits_senders() const noexcept {
        return services_.messages.has_receives() || !services_.fragments.empty();
    }
    void look_for_senders() noexcept;

    message_services services_;
    flush_queue flushes_{services_.pending, services_.control, services_.progress};
    request_finder requests_;
    early_offers early_;
    later_looks looks_for_the_gone_;  // whose endpoint was closed
    agenda::clock::time_point next_look_for_senders_;
    alarm alarm_;
    bool has_slept_ = false;           // the next call of progress may be the last one for long
    std::unique_ptr<char[]> scratch_;  // as long as the carrier's longest am_bcopy
    uint64_t closing_steps_ = 0;
};

}  // namespace cuda_nc::uct
