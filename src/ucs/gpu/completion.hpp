// How the end of launched work is seen where it has no buffer of its own.
#pragma once

#include <memory>
#include <new>

#include "ucs/base/status.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu {

struct completion {
    std::unique_ptr<event> mark;
    std::unique_ptr<memory> pinned;  // the words'; null: only the mark tells
    end_words ends;

    // Null: out of resources.
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

    // For the next launch's transfer.
    end_words *next_ends() noexcept {
        if (pinned == nullptr) {
            return nullptr;
        }
        ends.renew();
        return &ends;
    }
    // Once the mark is recorded behind the launch; blocks.
    ucs_status_t await() noexcept { return ends.await() ? UCS_OK : mark->synchronize(); }
};

}  // namespace cuda_nc::gpu
