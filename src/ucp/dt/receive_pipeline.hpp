// Gathers UCP's fragments, in any order, in chunks of staging, and unpacks each chunk into GPU
// memory by one launch as soon as it is full.
#pragma once

#include "ucp/dt/host_pipeline.hpp"

namespace cuda_nc::dt {

class receive_pipeline : public host_pipeline {
  public:
    ucs_status_t begin(layout_ref &&what, void *base, const gpu::memory_info &memory) noexcept;

    // Accepts packed bytes [offset, offset + length), no byte twice. With the message's last
    // missing byte it waits until all are in the user's memory. Copies move what kernels fail to.
    // An error, where copies fail too, is final: this call and every later one return it.
    ucs_status_t write(uint64_t offset, const char *packed, size_t length) noexcept;

    // Returns when all bytes written so far are in the user's memory; more may follow. The first
    // error met so far.
    ucs_status_t flush() noexcept;

    // Ends the message, complete or not: flush(), then returns all staging. The first error met in
    // the message's life.
    ucs_status_t end() noexcept;

    // ---- for the transport, which writes the bytes of a direct message itself

    // Launches unpacking of what has been gathered. Waits only where a launch fails.
    void launch_gathered() noexcept;
    // Forgets what has been gathered and not launched: the transport wrote these bytes too.
    void drop_gathered() noexcept;
    // The transport has written `length` more bytes, or has lost them by `status`. With the
    // message's last byte it waits as write() does.
    ucs_status_t arrived(uint64_t length, ucs_status_t status) noexcept;

    uint64_t received() const noexcept { return received_; }

  private:
    static constexpr unsigned num_slots = 4;

    enum class slot_state : uint8_t { idle, filling, launched };  // launched: until waited for
    struct slot {
        staging_buffer *buffer = nullptr;
        slot_state state = slot_state::idle;
        uint64_t begin = 0, length = 0;  // packed bytes of the chunk
        uint64_t filled = 0;             // bytes
        uint64_t turn = 0;               // when it was launched

        bool add(uint64_t offset, uint64_t bytes) noexcept;  // false: too many ranges
    };

    // False where nothing was gathered: the transport has brought all bytes so far.
    bool uses_slots() const noexcept { return chunk_size_ != 0; }
    void choose_chunk_size() noexcept;
    slot *find_slot(uint64_t begin) noexcept;
    slot *open_slot(uint64_t begin) noexcept;
    void launch(slot &gathered) noexcept;
    void copy_gathered(slot &gathered) noexcept;
    void wait_for(slot &launched) noexcept;
    void wait_for_all() noexcept;
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
