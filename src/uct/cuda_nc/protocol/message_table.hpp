// The direct messages of one interface, by number: in the order in which they began. Calls into UCP
// may end any of them. Used with UCX's worker locked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>

#include "uct/cuda_nc/engine/message_owner.hpp"
#include "uct/cuda_nc/memory/quarantine.hpp"

namespace cuda_nc::uct {

class receive_message;
class send_message;

class message_table final : public message_owner {
  public:
    message_table() noexcept;
    ~message_table();

    // Both throw std::bad_alloc.
    send_message &add(std::unique_ptr<send_message> begun);
    receive_message &add(std::unique_ptr<receive_message> begun);
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

    // Calls `what` with each message that exists when its turn comes.
    template <typename function>
    void for_each(function what) {
        visit(sends_, what);
        visit(receives_, what);
    }

    // message_owner
    unsigned progress_message(uint64_t message) noexcept override;
    unsigned progress_all() noexcept override;
    bool exists(uint64_t message) const noexcept override;
    bool is_polled(uint64_t message) const noexcept override;
    bool is_decided(uint64_t message) const noexcept override;

  private:
    template <typename map, typename function>
    static void visit(map &all, function &what) {
        for (auto at = all.begin(); at != all.end();) {
            const uint64_t number = at->first;
            what(*at->second);
            at = all.upper_bound(number);
        }
    }

    std::map<uint64_t, std::unique_ptr<send_message>> sends_;
    std::map<uint64_t, std::unique_ptr<receive_message>> receives_;
    std::unordered_multimap<uint64_t, receive_message *> receives_of_;  // by sender()
};

// A number for a message or an interface: not used twice in a process; never 0.
uint64_t next_message_id() noexcept;
// Whether this process has used `id`.
bool is_message_id(uint64_t id) noexcept;

}  // namespace cuda_nc::uct
