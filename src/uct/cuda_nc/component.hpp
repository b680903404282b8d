// Registers the transport cuda_nc with UCX.
#pragma once

namespace cuda_nc::uct {

constexpr char transport_name[] = "cuda_nc";

// Once with each UCX, whoever asks and from however many copies of this library: with the UCX
// around `in_ucx` (ucx_around() in ucs/base/ucx_instance.hpp). Does nothing where
// choose_transport() says no, where it is not clear which UCX is meant, or where that one is not
// served (one message).
void register_transport(const void *in_ucx) noexcept;

}  // namespace cuda_nc::uct
