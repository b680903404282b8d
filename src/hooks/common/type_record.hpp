// What the hooks keep of each datatype: of those that an MPI library registers with UCP, and of
// those that it packs itself (watched_types.hpp).
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "hooks/common/mpi_library.hpp"
#include "hooks/common/policy.hpp"
#include "ucp/dt/datatype.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::hooks {

constexpr uint64_t unknown_size = UINT64_MAX;

// What messages of `count` elements have in common.
struct counted_layout {
    uint64_t count = 0;
    layout_ref what;
    choice on_host = {false, ""};  // where the buffer lies in host memory
    const counted_layout *next = nullptr;
};

// Lives from ucp_dt_create_generic to ucp_dt_destroy, or as long as the datatype
// (watched_types.hpp). UCX's own object lives as long, so no request can use the record later. MPI
// may destroy a type from within the type's last finish(): nothing touches the record after that
// call.
class type_record {
  public:
    // `its_context`: what the library registers with UCP, to call its own operations with.
    type_record(const mpi_library &its_library, const void *its_datatype,
                void *its_context = nullptr) noexcept
        : mpi(its_library), datatype(its_datatype), context(its_context) {}
    ~type_record();
    type_record(const type_record &) = delete;
    type_record &operator=(const type_record &) = delete;

    const mpi_library &mpi;
    const void *const datatype;
    void *const context;

    // Null where this count is new; else lives as long as the record. Takes no lock.
    const counted_layout *find(uint64_t count) const noexcept {
        const counted_layout *entry = newest_.load(std::memory_order_acquire);
        while (entry != nullptr && entry->count != count) {
            entry = entry->next;
        }
        return entry;
    }

    // Makes what find() does not have, and keeps the first 16 counts. False where the original
    // operations must run. `expected_size`: packed bytes of that count by the MPI library, with
    // which ours must agree; or unknown_size. The first call reads the datatype.
    bool make(uint64_t count, uint64_t expected_size, counted_layout *made_p) const noexcept;

    // Size and place of `count` elements. False where the original operations must run. The first
    // call reads the datatype.
    bool find_bytes(uint64_t count, dt::message_bytes *bytes_p) const noexcept;

  private:
    bool make_locked(uint64_t count, uint64_t expected_size, counted_layout *made_p) const;
    void read_element() const;
    void refuse(const std::string &why) const;  // from now on the original operations run

    mutable std::atomic<const counted_layout *> newest_{nullptr};
    mutable unsigned num_counted_ = 0;
    mutable std::mutex mutex_;  // guards what follows, and the making of new entries
    mutable bool is_read_ = false;
    mutable std::atomic<bool> refused_{false};
    mutable layout_ref element_;
    mutable int64_t extent_ = 0;
};

}  // namespace cuda_nc::hooks
