// Registers the transport cuda_nc with the UCX of this process.
#pragma once

namespace cuda_nc::uct {

constexpr char transport_name[] = "cuda_nc";

// True where the settings ask for the transport.
bool is_transport_wanted() noexcept;

// Once in a process, whoever asks and from however many copies of this library. Does nothing where
// the settings do not ask for it, or where this UCX is not served (one message).
void register_transport() noexcept;

}  // namespace cuda_nc::uct
