// What is done with the bytes of a layout.
#pragma once

#include <cstdint>

namespace cuda_nc::gpu {

enum class direction : uint8_t {
    pack,    // laid-out bytes -> packed bytes
    unpack,  // packed bytes -> laid-out bytes
    copy     // laid-out bytes -> bytes laid out alike at another address
};

}  // namespace cuda_nc::gpu
