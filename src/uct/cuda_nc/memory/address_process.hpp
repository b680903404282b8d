// What a carrier's interface address tells of the process behind it.
#pragma once

#include <cstdint>
#include <string>

namespace cuda_nc::uct {

// The process, in our own numbering, whose memory the carrier `name` writes to when it sends to
// `address`; 0: the address does not say. Who owns that memory is the kernel's word, not the
// peer's.
uint32_t process_behind(const std::string &name, const void *address) noexcept;

}  // namespace cuda_nc::uct
