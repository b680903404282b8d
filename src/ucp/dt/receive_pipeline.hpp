// Gathers UCP's fragments, in any order, in chunks of staging, and unpacks each chunk into GPU
// memory by one launch as soon as it is full.
#pragma once

#include "ucp/dt/host_pipeline.hpp"

namespace cuda_nc::dt {

class receive_pipeline : public host_pipeline {
  public:
    ucs_status_t begin(layout_ref what, void *base, int ordinal) noexcept;

    // Takes packed bytes [offset, offset + length), no byte twice. With the message's last missing
    // byte it waits until all are in the user's memory. What kernels fail to bring goes by plain
    // copies. An error, where those fail too, is final: it is returned now and by every later call.
    ucs_status_t write(uint64_t offset, const char *packed, size_t length) noexcept;

    // Brings all bytes written so far to the user's memory and waits for them; more may follow. The
    // first error met so far.
    ucs_status_t flush() noexcept;

    // Brings to the user's memory what a short message left in staging, waits for everything and
    // returns all staging. The first error met in the message's life.
    ucs_status_t end() noexcept;

    // For a transport that brings the bytes from elsewhere: launches what has been gathered, waits
    // for nothing where that succeeds; then `length` more bytes are in the user's memory (or are
    // lost by `status`). The last call waits as write() does.
    void launch_gathered() noexcept;
    // What has been gathered and not launched came by the transport too.
    void drop_gathered() noexcept;
    ucs_status_t arrived(uint64_t length, ucs_status_t status) noexcept;

    uint64_t received() const noexcept { return received_; }

  private:
    static constexpr unsigned num_slots = 4;
    static constexpr unsigned max_ranges = 64;

    enum class slot_state : uint8_t { idle, filling, flying };
    struct slot {
        staging_buffer *buffer = nullptr;
        slot_state state = slot_state::idle;
        unsigned num_ranges = 0;
        uint64_t begin = 0, length = 0;  // packed bytes of the chunk
        uint64_t filled = 0;             // bytes
        uint64_t turn = 0;               // when it was launched
        staged_range ranges[max_ranges];

        bool add(uint64_t offset, uint64_t bytes) noexcept;  // false: too scattered
    };

    void choose_chunk_size() noexcept;
    slot *find_slot(uint64_t begin) noexcept;
    slot *open_slot(uint64_t begin) noexcept;
    void launch(slot &gathered) noexcept;
    void copy_gathered(slot &gathered) noexcept;
    void land(slot &flying) noexcept;
    void land_all() noexcept;
    void fail(ucs_status_t status) noexcept;
    void write_slowly(uint64_t offset, const char *packed, size_t length) noexcept;

    slot slots_[num_slots];
    slot *current_ = nullptr;  // the one that took the last fragment
    size_t chunk_size_ = 0;    // bytes, a power of two; 0: not chosen yet
    uint64_t received_ = 0;
    uint64_t next_turn_ = 0;
    ucs_status_t failed_ = UCS_OK;
};

}  // namespace cuda_nc::dt
