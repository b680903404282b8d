#include "hooks/type_record.hpp"

#include <cinttypes>
#include <cstdio>
#include <set>

#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"

namespace cuda_nc::hooks {

// Entries are never changed or removed before the record dies, so readers need no lock.
struct type_record::counted {
    uint64_t count;
    layout_ref what;
    const counted *next;
};

namespace {

constexpr unsigned max_counted = 16;  // a type used with more counts makes its layouts anew

// True at most 16 times, and once for a text: programs make the same type again and again.
bool is_new(const std::string &text) {
    constexpr size_t max_texts = 16;
    static std::mutex mutex;
    static auto *known = new std::set<std::string>;
    std::lock_guard<std::mutex> guard(mutex);
    return known->size() < max_texts && known->insert(text).second;
}

}  // namespace

type_record::~type_record() {
    const counted *entry = newest_.load(std::memory_order_relaxed);
    while (entry != nullptr) {
        const counted *next = entry->next;
        delete entry;
        entry = next;
    }
}

const type_record::counted *type_record::find(uint64_t count) const noexcept {
    const counted *entry = newest_.load(std::memory_order_acquire);
    while (entry != nullptr && entry->count != count) {
        entry = entry->next;
    }
    return entry;
}

layout_ref type_record::owned(uint64_t count) const noexcept {
    const counted *entry = find(count);
    return entry != nullptr ? entry->what : nullptr;
}

layout_ref type_record::layout(uint64_t count, void *original_state, bool *kept_p) const noexcept {
    const counted *entry = find(count);
    *kept_p = entry != nullptr;
    if (CUDA_NC_LIKELY(entry != nullptr)) {
        // two atomic operations a message less than an owner
        return layout_ref(layout_ref(), entry->what.get());
    }
    if (refused_.load(std::memory_order_relaxed)) {
        return nullptr;
    }
    try {
        return layout_slow(count, original_state);
    } catch (...) {
        return nullptr;
    }
}

layout_ref type_record::layout_slow(uint64_t count, void *original_state) const {
    std::lock_guard<std::mutex> guard(mutex_);
    if (!is_read_) {
        read_element();
    }
    if (refused_.load(std::memory_order_relaxed)) {
        return nullptr;
    }
    layout_ref made = count == 1 ? element_ : element_->repeat(count, extent_);
    if (made == nullptr) {
        refuse("its layout cannot be repeated");
        return nullptr;
    }
    uint64_t expected = operations.packed_size(original_state);
    if (made->packed_size() != expected) {
        char why[128];
        std::snprintf(why, sizeof(why),
                      "%" PRIu64 " elements have %" PRIu64 " bytes, the MPI library says %" PRIu64,
                      count, made->packed_size(), expected);
        refuse(why);
        return nullptr;
    }
    if (num_counted_ < max_counted) {
        newest_.store(new counted{count, made, newest_.load(std::memory_order_relaxed)},
                      std::memory_order_release);
        ++num_counted_;
    }
    return made;
}

void type_record::read_element() const {
    is_read_ = true;
    if (!api.extent(context, &extent_)) {
        refuse("its extent cannot be read");
        return;
    }
    element_ = api.element(context);
    if (element_ == nullptr) {
        refuse("its layout cannot be read");
        return;
    }
    nc_debug("datatype %s: %s, extent %" PRId64 " B", api.name(context).c_str(),
             element_->describe().c_str(), extent_);
}

void type_record::refuse(const std::string &why) const {
    refused_.store(true, std::memory_order_relaxed);
    std::string text = api.name(context) + " is left to Open MPI's own operations: " + why;
    if (is_new(text)) {
        nc_warn("datatype %s", text.c_str());
    } else {
        nc_info("datatype %s", text.c_str());
    }
}

}  // namespace cuda_nc::hooks
