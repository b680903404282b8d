// UCP's RTRs for which the carrier has no room. Until such an RTR has left its request lies in a
// queue of the carrier or of UCP: a receive that ended would leave freed memory there. It must not
// end before, not even where all its bytes are here, or its sender's process is gone. (The queue of
// a killed process may stay full for ever. Its receives wait then, as UCP's own would.)
#pragma once

#include <cstdint>
#include <iterator>
#include <new>
#include <unordered_map>

#include "uct/cuda_nc/engine/agenda.hpp"

namespace cuda_nc::uct {

struct endpoint;

class unsent_rtrs {
  public:
    explicit unsent_rtrs(agenda &looks) noexcept : looks_(looks) {}

    // UCP calls the receive `request`, and asks again later over `ep`. False: out of memory.
    bool add(uint64_t request, const endpoint &ep) noexcept try {
        all_[request].ep = &ep;
        return true;
    } catch (const std::bad_alloc &) {
        return false;
    }
    // It has left, or never will; also where it never waited.
    void remove(uint64_t request) noexcept {
        const auto found = all_.empty() ? all_.end() : all_.find(request);
        if (found != all_.end()) {
            remove(found);
        }
    }
    void endpoint_closed(const endpoint &ep) noexcept {
        for (auto one = all_.begin(); one != all_.end();) {
            one = one->second.ep == &ep ? remove(one) : std::next(one);
        }
    }

    bool has(uint64_t request) const noexcept {
        return !all_.empty() && all_.find(request) != all_.end();
    }
    // The same; `message` is looked at when it does not wait any more.
    bool holds_up(uint64_t request, uint64_t message) noexcept {
        const auto found = all_.empty() ? all_.end() : all_.find(request);
        if (found == all_.end()) {
            return false;
        }
        found->second.message = message;
        return true;
    }

  private:
    struct waiting {
        const endpoint *ep = nullptr;
        uint64_t message = 0;  // that it holds up; 0: none
    };
    using requests = std::unordered_map<uint64_t, waiting>;

    requests::iterator remove(requests::iterator one) noexcept {
        if (one->second.message != 0) {
            looks_.look_soon(one->second.message);
        }
        return all_.erase(one);
    }

    agenda &looks_;
    requests all_;
};

}  // namespace cuda_nc::uct
