// How the CPU learns that a launch has ended: by an event and, sooner, by words in pinned memory.
#pragma once

#include <memory>
#include <new>

#include "ucs/base/status.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu {

struct completion {
    std::unique_ptr<event> mark;
    std::unique_ptr<memory> pinned;  // holds the words; null: only the event tells
    end_words ends;

    // Null: no memory, or the device gave no event.
    static std::unique_ptr<completion> make(device &of) noexcept {
        std::unique_ptr<completion> made(new (std::nothrow) completion);
        if (made == nullptr || of.create_event(&made->mark) != UCS_OK) {
            return nullptr;
        }
        if (of.allocate_pinned(end_words::bytes, &made->pinned) == UCS_OK) {
            made->ends.use(made->pinned->address());
        }
        return made;
    }

    // For transfer::ends of the next launch; null: only the event tells.
    end_words *next_ends() noexcept {
        if (pinned == nullptr) {
            return nullptr;
        }
        ends.renew();
        return &ends;
    }
    // Blocks until the launch has ended; the event must be recorded behind it.
    ucs_status_t await() noexcept { return ends.await() ? UCS_OK : mark->synchronize(); }
};

}  // namespace cuda_nc::gpu
