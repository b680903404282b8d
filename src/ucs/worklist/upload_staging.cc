#include "ucs/worklist/upload_staging.hpp"

#include <algorithm>
#include <cstring>

#include "ucs/base/given_up.hpp"

namespace cuda_nc::worklist {

upload_staging::slot *upload_staging::acquire() noexcept {
    for (auto &one : slots_) {
        if (!one->in_flight || one->done->query() != UCS_INPROGRESS) {
            return one.get();
        }
    }
    if (slots_.size() == max_slots) {
        return nullptr;
    }
    try {
        auto made = std::make_unique<slot>();
        slots_.reserve(max_slots);
        if (where_.create_event(&made->done) != UCS_OK ||
            where_.allocate_pinned(slot_size, &made->pinned) != UCS_OK) {
            return nullptr;
        }
        slots_.push_back(std::move(made));
        return slots_.back().get();
    } catch (...) {
        return nullptr;
    }
}

ucs_status_t upload_staging::copy(gpu::stream &on, char *destination, const char *source,
                                  size_t length) noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    while (length != 0) {
        slot *through = acquire();
        if (through == nullptr) {
            return on.copy(destination, source, length);
        }
        size_t piece = std::min(length, slot_size);
        std::memcpy(through->pinned->address(), source, piece);
        ucs_status_t status = on.copy(destination, through->pinned->address(), piece);
        if (status != UCS_OK) {
            return status;
        }
        through->in_flight = true;
        status = on.record(*through->done);
        if (status != UCS_OK) {
            // The end of the copy cannot be seen: the slot is never reused or freed.
            auto at = std::find_if(slots_.begin(), slots_.end(),
                                   [&](const auto &one) { return one.get() == through; });
            give_up_for_ever(at->release());
            slots_.erase(at);
            return status;
        }
        destination += piece;
        source += piece;
        length -= piece;
    }
    return UCS_OK;
}

}  // namespace cuda_nc::worklist
