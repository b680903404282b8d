// The direct messages of one interface, by number: in the order in which they began. Calls into UCP
// may end any of them. Used with UCX's worker locked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "ucs/base/number_map.hpp"
#include "uct/cuda_nc/engine/message_owner.hpp"
#include "uct/cuda_nc/memory/quarantine.hpp"

namespace cuda_nc::uct {

class receive_message;
class send_message;

class message_table final : public message_owner {
  public:
    message_table() noexcept;
    ~message_table();

    // Makes a message of `of`, the arguments of its constructor, in memory of one that has ended
    // where there is some. Throws std::bad_alloc.
    template <typename message, typename... arguments>
    message &add(arguments &&...of) {
        static_assert(alignof(message) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
        void *room = blocks_of<message>().take(sizeof(message));
        auto *made = new (room) message(std::forward<arguments>(of)...);
        list(made);
        return *made;
    }
    void erase(const send_message &ended) noexcept;
    void erase(const receive_message &ended) noexcept;
    void clear() noexcept;

    // Null: there is no such message; also if it is not one with that peer.
    send_message *find_send(uint64_t number) const noexcept;
    send_message *find_send(message_of_peer message) const noexcept;
    receive_message *find_receive(message_of_peer message) const noexcept;
    // The receive of message `sender` of `peer`; null: none is under way.
    receive_message *find_receive_of(uint64_t sender, uint64_t peer) const noexcept;

    size_t size() const noexcept { return sends_.size() + receives_.size(); }
    bool empty() const noexcept { return sends_.empty() && receives_.empty(); }
    bool has_receives() const noexcept { return !receives_.empty(); }

    // Calls `what` with each message that exists when its turn comes.
    template <typename function>
    void for_each(function what) {
        sends_.for_each(what);
        receives_.for_each(what);
    }

    // message_owner
    unsigned progress_message(uint64_t message) noexcept override;
    unsigned progress_all() noexcept override;
    bool exists(uint64_t message) const noexcept override;
    bool is_polled(uint64_t message) const noexcept override;
    bool is_decided(uint64_t message) const noexcept override;

  private:
    // Memory of messages that have ended, for the next ones.
    class blocks {
      public:
        blocks() noexcept = default;
        ~blocks();
        blocks(const blocks &) = delete;
        blocks &operator=(const blocks &) = delete;
        // Throws std::bad_alloc.
        void *take(size_t bytes);
        void give_back(void *one) noexcept;

      private:
        static constexpr size_t most = 256;
        std::vector<void *> unused_;
    };
    template <typename message>
    blocks &blocks_of() noexcept {
        return std::is_same_v<message, send_message> ? send_blocks_ : receive_blocks_;
    }
    // Destroy the message where they throw std::bad_alloc.
    void list(send_message *made);
    void list(receive_message *made);
    void unlink(const receive_message &ended) noexcept;

    blocks send_blocks_, receive_blocks_;
    number_map<send_message> sends_;
    number_map<receive_message> receives_;
    // By sender(), the first of those that have it; next_of_sender leads to the others.
    number_map<receive_message> receives_of_;
};

// A number for a message or an interface: not used twice in a process; never 0.
uint64_t next_message_id() noexcept;
// Whether this process has used `id`.
bool is_message_id(uint64_t id) noexcept;

}  // namespace cuda_nc::uct
