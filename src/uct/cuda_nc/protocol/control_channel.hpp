// Sends control messages: in order for each endpoint, later where the carrier has no room, and to
// peers to which no endpoint leads at the moment. Used with UCX's worker locked.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <unordered_map>
#include <vector>

#include "uct/cuda_nc/engine/agenda.hpp"
#include "uct/cuda_nc/engine/message_owner.hpp"
#include "uct/cuda_nc/engine/progress_hook.hpp"
#include "uct/cuda_nc/protocol/announcement.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"

namespace cuda_nc::uct {

struct interface;

class control_channel final : public unsent_messages {
  public:
    control_channel(interface &iface, progress_hook &progress, agenda &looks) noexcept
        : iface_(iface), progress_(progress), looks_(looks) {}

    // Now or later. Null: the endpoint is closed, and nothing is sent.
    void send(endpoint *ep, const wire::control &message) noexcept;
    // False: there is no room, and nothing was sent. Writes version and identity into the message.
    // (True also where the carrier has lost it.)
    bool send_now(endpoint &ep, wire::control *message) noexcept;
    // UCP's RTS with that before it. After an error nothing was sent.
    ucs_status_t announce(endpoint &ep, const announcement &what, const void *rts,
                          size_t length) noexcept;

    // A message of `kind` without further content about messages `to` (the peer's) and `from`
    // (ours).
    void send(endpoint *ep, wire::control_kind kind, uint64_t to, uint64_t from) noexcept;
    // A message of UCP's, in its name, under UCP's `id`, which arrives as a last word does; it ends
    // our message `from` (0: none). Null: nothing is sent.
    void send_of_ucp(endpoint *ep, uint8_t id, const void *message, size_t length,
                     uint64_t from) noexcept;
    // The same by way of any endpoint to the peer's interface. Where there is none the message is
    // kept until there is one.
    void send_to_interface(uint64_t interface, wire::control_kind kind, uint64_t to,
                           uint64_t from) noexcept;

    // `cancel` to who answers our message `from` too late, or again. A peer that asks on and does
    // not read is not told for ever: at most most_words_of_one wait for a message, and none where
    // words of most_waiting messages do.
    void refuse(uint64_t interface, uint64_t to, uint64_t from) noexcept;
    static constexpr unsigned most_words_of_one = 8;
    static constexpr size_t most_waiting = 65536;

    // Sends what had no room; says how many.
    unsigned progress() noexcept;
    // The same for one endpoint. False: some of it still waits.
    bool send_unsent(endpoint &ep) noexcept;
    bool has_unsent(const endpoint *ep) const noexcept override {
        return !unsent_.empty() && unsent_.count(ep) != 0;
    }
    // Whether something of our message `from` waits for room. The agenda looks at the message when
    // it has left.
    bool has_unsent_of(uint64_t from) const noexcept {
        return !unsent_of_.empty() && unsent_of_.count(from) != 0;
    }
    bool empty() const noexcept { return unsent_.empty(); }

    // `ep` leads to its peer from now on: says what was kept for the peer.
    void endpoint_connected(endpoint &ep) noexcept;
    // The endpoint goes away. What waits for room there goes over `other`, which leads to the same
    // peer; where that is null, what the peer cannot do without is kept.
    void endpoint_closed(const endpoint &ep, endpoint *other) noexcept;

  private:
    // A message that waits for room: the bytes that go on the wire, under this id.
    struct unsent {
        uint8_t id;
        uint64_t from;
        std::vector<char> bytes;
    };
    // Without it the peer waits for ever, or keeps memory.
    struct kept {
        uint64_t interface;
        uint8_t id;
        std::vector<char> bytes;
    };
    using kept_words = std::list<kept>;

    // Two spans of bytes as one message, by am_bcopy.
    static ucs_status_t send_spans(endpoint &ep, uint8_t id, const void *message, size_t length,
                                   const void *rest, size_t rest_length) noexcept;
    bool try_send(endpoint &ep, uint8_t id, const void *message, size_t length) noexcept;
    void stamp(wire::control *message) const noexcept;
    void add_unsent(endpoint &ep, uint8_t id, const void *message, size_t length, uint64_t from);
    void left(const unsent &message) noexcept;
    bool move(const unsent &message, endpoint &to) noexcept;
    unsigned send_some(endpoint &ep) noexcept;
    void keep(uint64_t interface, uint8_t id, const void *message, size_t length) noexcept;
    void keep_if_needed(const endpoint &ep, uint8_t id, const void *message,
                        size_t length) noexcept;

    interface &iface_;
    progress_hook &progress_;
    agenda &looks_;
    std::map<endpoint *, std::deque<unsent>, std::less<>> unsent_;  // in order; none is empty
    std::unordered_map<uint64_t, unsigned> unsent_of_;  // how many, by the author's message
    endpoint *last_visited_ = nullptr;
    kept_words kept_;                                                   // the oldest comes first
    std::unordered_multimap<uint64_t, kept_words::iterator> kept_for_;  // by the peer's interface
};

}  // namespace cuda_nc::uct
