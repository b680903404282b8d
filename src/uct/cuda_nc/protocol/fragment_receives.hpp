// Receives whose bytes UCP brings in fragments. Outside peer-error mode UCP waits for the next one
// for ever where the sender's process is killed in between; such a receive ends with
// UCS_ERR_CONNECTION_RESET. Used with UCX's worker locked.
#pragma once

#include <cstdint>

#include "uct/cuda_nc/protocol/patient_looks.hpp"
#include "uct/cuda_nc/user_buffer.hpp"

namespace cuda_nc::uct {

struct interface;
class request_endpoints;

class fragment_receives {
  public:
    fragment_receives(interface &iface, request_endpoints &endpoints) noexcept;
    ~fragment_receives();
    fragment_receives(const fragment_receives &) = delete;
    fragment_receives &operator=(const fragment_receives &) = delete;

    // `total` bytes for the receive that UCP calls `request` are to come from `sender`. Nothing
    // where nobody can tell whether that process is gone.
    void add(user_buffer &buffer, const process_id &sender, uint64_t request,
             uint64_t total) noexcept;

    bool empty() const noexcept { return is_empty(awaited_) && is_empty(lost_); }
    // What has been sent by processes that are gone is awaited a little longer.
    bool is_busy() const noexcept { return !is_empty(lost_); }

    // Looks whether senders of those that were there the last time are gone.
    void look() noexcept;
    // The call of progress with this number. May end one: what UCP then calls may end any message.
    unsigned progress(unsigned call) noexcept;  // how much has happened

  private:
    using list = awaited_fragments;
    static bool is_empty(const list &one) noexcept { return one.after == &one; }
    static void append(list &to, awaited_fragments &one) noexcept;
    void fail(awaited_fragments &one) noexcept;

    interface &iface_;
    request_endpoints &endpoints_;
    list awaited_, lost_;  // circles
    patient_looks looks_;  // at the lost
};

}  // namespace cuda_nc::uct
