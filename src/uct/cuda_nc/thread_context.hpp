// What the transport and the layers above it tell each other by way of the calling thread.
//
// UCP stands between the transport and the datatype, and its calls have no room for a parameter of
// ours. So one sets a thread-local for the length of one call of UCP, and the other reads it in the
// call that UCP makes from there. These three are all; each is set and cleared in one place.
//
//   pack_call     set by data_call (protocol), read by the datatype's pack()
//   unpack_call   set by deliver_rndv_data() (protocol), read by the datatype's unpack()
//   datatype_send set by the hooks of sends, read when UCP asks how fast we are
#pragma once

#include <cstddef>
#include <cstdint>

#include "ucs/base/status.hpp"

namespace cuda_nc::uct {

class user_buffer;

// What pack() is to do with the bytes that UCP asks for.
enum class pack_answer : uint8_t {
    fragment,  // pack them: they go as a fragment (the receiver is not ours, or something failed)
    first,     // pack so many: they go with the offer and tell the receiver which message it is of
    wait,      // the receiver is asked, or GPUs are at work: what is packed is not sent, and UCP
               // asks again
    fin        // all bytes are at the receiver: claim them and pack nothing
};

// There while pack() is called for rendezvous data that the transport sends.
class pack_call {
  public:
    // *length_p: what UCP asks for; after pack_answer::first: how many bytes to pack.
    virtual pack_answer ask(user_buffer &buffer, uint64_t offset, size_t *length_p) noexcept = 0;

    static pack_call *current() noexcept { return current_; }

  protected:
    ~pack_call() = default;
    static thread_local pack_call *current_;
};

// There while unpack() is called for bytes of another process that has the transport.
struct unpack_call {
    bool fin = false;    // all bytes but the first have arrived in the memory of `buffer`
    bool whole = false;  // fin: the first bytes too, once more
    user_buffer *buffer = nullptr;  // fin: whose they are
    uint64_t finder = 0;  // not fin: a buffer that takes offers writes its ucx_state() here
    ucs_status_t status = UCS_OK;  // fin: what became of the bytes

    static unpack_call *current() noexcept { return current_; }
    static thread_local unpack_call *current_;
};

// There while UCP sends one of our datatypes (selection.hpp).
class datatype_send {
  public:
    datatype_send() noexcept { current_ = true; }
    ~datatype_send() { current_ = false; }
    datatype_send(const datatype_send &) = delete;
    datatype_send &operator=(const datatype_send &) = delete;

    static bool is_current() noexcept { return current_; }

  private:
    static inline thread_local bool current_ = false;
};

}  // namespace cuda_nc::uct
