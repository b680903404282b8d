// How UCP chooses between eager and rendezvous for our datatypes.
//
// UCP takes a generic datatype for host memory: a send that should complete fast stays eager up to
// 256 KiB, and without a transport that copies between processes any other one nearly as long. For
// memory on a GPU that is several times slower than a rendezvous that goes from GPU to GPU. The
// choice is made, once for all datatypes of a connection, while the first one is sent: what our
// transport then says of itself is said for this choice alone, and contiguous memory keeps its own.
// Which messages make use of it the hooks of sends decide by their size.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "ucs/base/ucx_instance.hpp"

namespace cuda_nc::uct {

// Factor by which we divide our reported bandwidth while UCP sends one of our datatypes. Within a
// machine a rendezvous costs less than the kernels and events of a copy, however short: UCP prefers
// it from the first byte on, also where its own bytes would be copied too (it takes those for 1 %
// faster). Between hosts, where the round trip is one of a network, it does from a few KiB on.
constexpr double slowness_within_machine = 1e9, slowness_between_hosts = 8;

// Interfaces that move messages from GPU to GPU, by the index of their UCX instance.
inline std::array<std::atomic<unsigned>, max_ucx_instances> direct_interfaces;

// Bytes from which on a contiguous message may be ours too (hooks/common/contiguous.hpp), once
// there is such an interface: those of UCX_CUDA_NC_DIRECT_THRESH where it is set, else as many as
// UCX's own way takes no longer for.
constexpr uint64_t contiguous_length = 64 << 10;
inline std::atomic<uint64_t> least_contiguous{UINT64_MAX};

// Up to so many bytes a contiguous message of GPU memory that should be done with its buffer before
// its receiver is there (MPI_Send) is sent eagerly, as a datatype of ours, once UCX reads GPU
// memory by our gets. By them a rendezvous is so quick that UCX chooses it for a single byte, and
// two processes that both send before they receive would wait for each other. 0: for no message.
// Shorter than DIRECT_THRESH, and never more than what UCX by itself sends eagerly between two
// H100.
constexpr uint64_t most_buffered_of_all = 4 << 10;
inline std::atomic<uint64_t> most_buffered{0};

}  // namespace cuda_nc::uct
