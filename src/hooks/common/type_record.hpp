// What the hooks keep for each datatype: those that an MPI library registers with UCP, and those
// that it moves by its convertor.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include <ucp/api/ucp.h>

#include "hooks/open_mpi/open_mpi.hpp"
#include "hooks/common/policy.hpp"
#include "ucp/dt/datatype.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::hooks {

constexpr uint64_t unknown_size = UINT64_MAX;

// What is known of a message of `count` elements.
struct counted_layout {
    uint64_t count = 0;
    layout_ref what;
    choice on_host = {false, ""};  // the path where the buffer is in host memory
    const counted_layout *next = nullptr;
};

// Lives from ucp_dt_create_generic to ucp_dt_destroy, or as long as the datatype
// (watched_types.hpp). UCX's own record has the same life, so no request can use it later; that MPI
// destroys a type from within the type's last finish() is allowed for by never touching the record
// after that call.
class type_record {
  public:
    type_record(const ucp_generic_dt_ops_t &its_operations, void *its_context,
                const open_mpi &its_api) noexcept
        : operations(its_operations), context(its_context), api(its_api) {}
    ~type_record();
    type_record(const type_record &) = delete;
    type_record &operator=(const type_record &) = delete;

    const ucp_generic_dt_ops_t operations;  // the MPI library's own, or none
    void *const context;                    // its datatype
    const open_mpi &api;

    // Kept as long as the record lives; null where this count is new. Takes no lock.
    const counted_layout *find(uint64_t count) const noexcept {
        const counted_layout *entry = newest_.load(std::memory_order_acquire);
        while (entry != nullptr && entry->count != count) {
            entry = entry->next;
        }
        return entry;
    }

    // Makes what find() has not found, and keeps it where not too many are kept. False where the
    // original operations must run. `expected_size` is what the MPI library says of that count: its
    // packed bytes must agree with ours, unless unknown. The first call reads the datatype.
    bool make(uint64_t count, uint64_t expected_size, counted_layout *made_p) const noexcept;

    // What `count` elements have. False where the original operations must run. The first call
    // reads the datatype.
    bool find_bytes(uint64_t count, dt::message_bytes *bytes_p) const noexcept;

  private:
    bool make_locked(uint64_t count, uint64_t expected_size, counted_layout *made_p) const;
    void read_element() const;
    void refuse(const std::string &why) const;

    mutable std::atomic<const counted_layout *> newest_{nullptr};
    mutable unsigned num_counted_ = 0;
    mutable std::mutex mutex_;  // below and the making of new entries
    mutable bool is_read_ = false;
    mutable std::atomic<bool> refused_{false};
    mutable layout_ref element_;
    mutable int64_t extent_ = 0;
};

}  // namespace cuda_nc::hooks
