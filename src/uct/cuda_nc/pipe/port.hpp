// Pipe ports: what one end of a pipe needs on its GPU beside the ring. They are kept in pools, one
// for each GPU, and each is lent to one message at a time. Thread safe.
#pragma once

#include <cstdint>
#include <memory>

#include "ucs/gpu/device.hpp"
#include "uct/cuda_nc/engine/admission.hpp"
#include "uct/cuda_nc/memory/quarantine.hpp"

namespace cuda_nc::uct {

constexpr size_t pipe_words_bytes = max_message_channels * gpu::pipe_word_stride;

// A message is cut into segments of at least so many bytes.
constexpr uint64_t least_segment = 64 << 10;

// Higher sequences are refused: a hostile peer's could leave none for the messages that follow. A
// port that comes to them begins again.
constexpr uint64_t last_sequence = uint64_t{1} << 62;

struct pipe_port {
    int device;
    char *words;              // flags or credits; the peer's kernel writes there
    uint64_t words_offset;    // in the allocation, as a peer sees it
    gpu::ipc_handle *handle;  // of the allocation
    gpu::pipe_state *state;
    gpu::pipe_report *report;                     // pinned
    uint64_t *abort_source;                       // pinned
    uint64_t sequence = gpu::pipe_sequence_step;  // the least that the next message may have
    gpu::launch_tracker turns;
};

// A message holds the port of a pipe until its peer is through, that of a pull while its own kernel
// runs. Some ports are left for pulls: these wait for their port, and must not wait for a peer.
enum class port_use : uint8_t { pipe, pull };

// Null: out of resources, or the GPU has no pipes.
pipe_port *acquire_port(int device, port_use use = port_use::pipe) noexcept;
// Whether there are ports at all, in use or not.
bool has_ports(int device) noexcept;
// Destroys those of a GPU that the program has reset. False: one was lent, now or before.
bool drop_unused_ports(int device) noexcept;

// Neither our kernel nor the peer's touches the port any more.
void release_port(pipe_port *back) noexcept;

// Its kernel has failed, and the port is not used again. Its memory stays with the process.
void retire_port(pipe_port *broken) noexcept;

// The peer's kernel may still write to the port: it is released as memory/quarantine.hpp says.
void quarantine_port(pipe_port *port, const process_id &writer, message_of_peer message) noexcept;

// Tells the port's kernel to leave message `sequence`, by a copy that waits for no other stream.
ucs_status_t write_abort(pipe_port &port, uint64_t sequence) noexcept;

size_t ports_lent() noexcept;  // for tests

}  // namespace cuda_nc::uct
