#include "hooks/common/type_record.hpp"

#include <cinttypes>
#include <cstdio>
#include <set>
#include <utility>

#include "ucs/base/log.hpp"

namespace cuda_nc::hooks {

namespace {

constexpr unsigned max_counted = 16;  // layouts of further counts are made for each message

// True at most 16 times, and once for each text: programs make the same type again and again.
bool is_new(const std::string &text) {
    constexpr size_t max_texts = 16;
    static std::mutex mutex;
    static auto *known = new std::set<std::string>;
    std::lock_guard<std::mutex> guard(mutex);
    return known->size() < max_texts && known->insert(text).second;
}

}  // namespace

type_record::~type_record() {
    const counted_layout *entry = newest_.load(std::memory_order_relaxed);
    while (entry != nullptr) {
        const counted_layout *next = entry->next;
        delete entry;
        entry = next;
    }
}

bool type_record::make(uint64_t count, uint64_t expected_size,
                       counted_layout *made_p) const noexcept {
    if (refused_.load(std::memory_order_relaxed)) {
        return false;
    }
    try {
        std::lock_guard<std::mutex> guard(mutex_);
        return make_locked(count, expected_size, made_p);
    } catch (...) {
        return false;
    }
}

bool type_record::make_locked(uint64_t count, uint64_t expected_size,
                              counted_layout *made_p) const {
    if (!is_read_) {
        read_element();
    }
    if (refused_.load(std::memory_order_relaxed)) {
        return false;
    }
    layout_ref what = count == 1 ? element_ : element_->repeat(count, extent_);
    if (what == nullptr) {  // so many elements go by the MPI library; fewer may still be ours
        nc_info("%" PRIu64 " elements of datatype %s in one message are left to %s", count,
                mpi.name(datatype).c_str(), mpi.product());
        return false;
    }
    if (expected_size != unknown_size && what->packed_size() != expected_size) {
        char why[128];
        std::snprintf(why, sizeof(why),
                      "%" PRIu64 " elements have %" PRIu64 " bytes, the MPI library says %" PRIu64,
                      count, what->packed_size(), expected_size);
        refuse(why);
        return false;
    }
    made_p->count = count;
    made_p->on_host = choose_for_host(*what, mpi);
    made_p->what = std::move(what);
    made_p->next = newest_.load(std::memory_order_relaxed);
    if (num_counted_ < max_counted && find(count) == nullptr) {
        // Entries are never changed or removed before the record dies: readers need no lock.
        newest_.store(new counted_layout(*made_p), std::memory_order_release);
        ++num_counted_;
    }
    return true;
}

bool type_record::find_bytes(uint64_t count, dt::message_bytes *bytes_p) const noexcept {
    if (const counted_layout *known = find(count)) {
        *bytes_p = {known->what->packed_size(), known->what->lower_bound()};
        return true;
    }
    if (refused_.load(std::memory_order_relaxed)) {
        return false;
    }
    try {
        std::lock_guard<std::mutex> guard(mutex_);
        if (!is_read_) {
            read_element();
        }
        if (refused_.load(std::memory_order_relaxed)) {
            return false;
        }
        *bytes_p = {count * element_->packed_size(), element_->lower_bound()};
        return true;
    } catch (...) {
        return false;
    }
}

void type_record::read_element() const {
    is_read_ = true;
    if (!mpi.extent(datatype, &extent_)) {
        refuse("its extent cannot be read");
        return;
    }
    element_ = mpi.element(datatype);
    if (element_ == nullptr) {
        refuse("its layout cannot be read");
        return;
    }
    nc_debug("datatype %s: %s, extent %" PRId64 " B", mpi.name(datatype).c_str(),
             element_->describe().c_str(), extent_);
}

void type_record::refuse(const std::string &why) const {
    refused_.store(true, std::memory_order_relaxed);
    std::string text =
        mpi.name(datatype) + " is left to " + mpi.product() + "'s own operations: " + why;
    if (is_new(text)) {
        nc_warn("datatype %s", text.c_str());
    } else {
        nc_info("datatype %s", text.c_str());
    }
}

}  // namespace cuda_nc::hooks
