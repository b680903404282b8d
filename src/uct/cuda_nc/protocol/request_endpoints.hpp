// UCP ends a receive with the help of the endpoint over which it asked for the bytes. An endpoint
// that no program holds, because it receives alone, is freed by UCP when its connection fails, and
// outside peer-error mode the receives that came over it stay: what ends one of these later would
// use memory of an endpoint that is no more. It is given what UCP reads of an endpoint there: the
// worker, and which configuration it had.
#pragma once

#include <cstdint>
#include <cstring>

#include "uct/cuda_nc/protocol/request_finder.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"

namespace cuda_nc::uct {

class request_endpoints {
  public:
    // UCP asks for the bytes of `request`, which request_finder knows: its endpoint is there.
    void learn(uint64_t request) noexcept {
        const char *ep = read(request);
        if (ep != nullptr) {
            std::memcpy(stand_in_, ep, sizeof(stand_in_));
        }
    }
    // Before UCP is told of the end of `request`, whose endpoint may be freed. (Freed ones lie in
    // memory of the worker, and begin with something else than its address.)
    void prepare(uint64_t request) noexcept {
        const char *ep = stand_in_[0] != 0 ? read(request) : nullptr;
        if (ep != nullptr && std::memcmp(ep, stand_in_, sizeof(stand_in_[0])) != 0) {
            const char *mine = reinterpret_cast<const char *>(stand_in_);
            std::memcpy(reinterpret_cast<char *>(request) + wire::request_endpoint_offset, &mine,
                        sizeof(mine));
        }
    }

  private:
    // Null: UCP does not call the request by its address.
    static const char *read(uint64_t request) noexcept {
        uint64_t ep = 0;
        if (request_finder::is_address(request)) {
            std::memcpy(&ep,
                        reinterpret_cast<const char *>(request) + wire::request_endpoint_offset,
                        sizeof(ep));
        }
        return request_finder::is_address(ep) ? reinterpret_cast<const char *>(ep) : nullptr;
    }

    uint64_t stand_in_[wire::endpoint_length / sizeof(uint64_t)] = {};
};

}  // namespace cuda_nc::uct
