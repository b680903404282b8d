// A direct message that comes to one of our GPUs: answers the sender's offer with a route, and
// hands the bytes over to UCP when the sender's FIN has come and the route is through. Used with
// UCX's worker locked.
//
//   accept() -> moving ---------- FIN, route through ----------> delivered to UCP, and gone
//                 | leave(), route failed: "stop" is sent
//                 +-> stopped --- the sender's cancel or FIN, or closed endpoint -> gone
//
// UCX closes an endpoint as soon as one of its connections ends, and drops what it has not read of
// the others: with it the FIN of a sender that has left when its sends were complete. Once the
// sender's process is gone a message whose bytes are all here is delivered without its FIN, and one
// that lacks some ends with UCS_ERR_CONNECTION_RESET: UCP ends such receives in peer-error mode
// alone. A process is looked for soon after the endpoint has closed (look_for_sender()), else every
// few seconds (direct_messages).
//
// A route that wants nothing of the sender but its memory (a pull, or straight from contiguous
// memory) holds UCP's RTR back. Then nothing is said to the sender until the end: when the route is
// through UCP's ATS goes in the place of the RTR, and ends the send; where it fails, the RTR goes.
// Then the message stays until the first fragment comes, or the sender is gone. A message that ends
// before its receive leaves it to fragment_receives.
//
// One side may be contiguous memory, of which UCP alone knows:
// - The receiver's: UCP is told of the end by its own ATP. The route is "straight", or any other
//   where the sender cannot reach that memory.
// - The sender's: there is no message at the sender.
#pragma once

#include <memory>
#include <optional>

#include "uct/cuda_nc/ep.hpp"
#include "uct/cuda_nc/protocol/patient_looks.hpp"
#include "uct/cuda_nc/protocol/plain_memory.hpp"
#include "uct/cuda_nc/protocol/route.hpp"
#include "uct/cuda_nc/user_buffer.hpp"

namespace cuda_nc::uct {

class receive_message final : public direct_message, public endpoint_user {
  public:
    // Message `sender` of the peer (0: contiguous memory) has `total` bytes, of which `first` have
    // arrived with the offer. UCP calls the receive `request`. `rtr`: UCP's RTR, which may be held
    // back; null: it has gone.
    receive_message(message_services &services, endpoint &ep, user_buffer &buffer, uint64_t id,
                    uint64_t sender, uint64_t request, uint64_t total, uint64_t first,
                    const wire::rtr_head *rtr) noexcept;
    // Into contiguous memory.
    receive_message(message_services &services, endpoint &ep, std::unique_ptr<plain_memory> memory,
                    uint64_t id, uint64_t sender, uint64_t request, uint64_t total) noexcept;
    ~receive_message();

    // Also where the user's part ends before the message does: then what was lent is kept until the
    // sender has said that it writes no more.
    void leave() noexcept override;

    // Chooses a route for the offer and answers, with `flags` as in the message. False: there is
    // none, and nothing was said. (Without first bytes offer.source is empty.) *holds_rtr_p: UCP's
    // RTR is held back, and UCP shall think that it has been sent; else the message may have ended.
    bool accept(const wire::early_offer &offer, uint32_t flags, bool *holds_rtr_p) noexcept;

    // slot_full or wake.
    void handle(const wire::control &message) noexcept;
    // The sender's FIN: all but the first bytes, `length`, are there. UCP's header is kept for
    // delivery. May erase this message, as the next four may.
    void handle_fin(const wire::rndv_header &header, uint64_t length) noexcept;
    void handle_cancel() noexcept;
    // The sender's bytes may go away: what reads them stops.
    void handle_withdraw() noexcept;
    void endpoint_closed(endpoint *other) noexcept override;
    // UCP may use another endpoint to the peer for the message than ep(): that is for answers.
    void answer_by_any_endpoint() noexcept { any_endpoint_ = true; }
    unsigned progress() noexcept;  // how much has happened
    // Its sender is to be looked for: true from the second call on, until it is found gone.
    bool lasts() noexcept;
    // May erase this message.
    void note_sender_is_gone() noexcept;

    uint64_t id() const noexcept { return message_.id; }
    uint64_t sender() const noexcept { return message_.sender; }
    uint64_t peer() const noexcept { return message_.peer; }
    const endpoint *ep() const noexcept { return message_.ep; }
    const process_id &sending_process() const noexcept { return message_.sending_process; }
    bool is_polled() const noexcept { return route_ != nullptr && route_->is_polled(); }

    receive_message *next_of_sender = nullptr;  // the message table's

  private:
    std::unique_ptr<receive_route> prepare_route(const wire::early_offer &offer) noexcept;
    void await_fragments() noexcept;
    void stop_sender() noexcept;
    void prepare_request() noexcept;
    void deliver(ucs_status_t status) noexcept;
    void deliver_plain(ucs_status_t status) noexcept;
    bool acknowledge(ucs_status_t status) noexcept;
    void change_endpoint(endpoint *ep) noexcept;
    void look_for_sender() noexcept;
    bool ends_without_sender() noexcept;
    void end_without_sender(ucs_status_t status) noexcept;
    bool may_fail() const noexcept;
    void release_rtr() noexcept;
    void end() noexcept;

    receive_context message_;
    const uint64_t request_;
    std::unique_ptr<plain_memory> plain_;  // null: a datatype of ours
    std::optional<wire::rtr_head> held_;   // UCP's RTR, in whose place ATS is to go
    uint32_t flags_ = 0;                   // of answers to the sender
    bool any_endpoint_ = false;            // to the peer is as good as message_.ep
    bool stopped_ = false;                 // the sender has been told to stop
    bool is_acknowledged_ = false;         // ATS goes, or has gone
    bool rtr_has_left_ = false;            // the one that was held back: fragments are to come
    bool has_fin_ = false;                 // the sender's bytes are all there
    bool was_seen_ = false;                // by lasts()
    bool sender_is_gone_ = false;          // its process is
    unsigned looks_without_sender_ = 0;    // since then, for words that are on their way
    patient_looks last_looks_;             // at them
    agenda::clock::time_point next_look_;  // whether the sender of a closed endpoint is gone
    std::chrono::milliseconds pause_{0};   // before the look after that
    wire::rndv_header header_ = {};        // UCP's, that came with the FIN
    std::unique_ptr<receive_route> route_;
};

}  // namespace cuda_nc::uct
