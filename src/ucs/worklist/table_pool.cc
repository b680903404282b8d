#include "ucs/worklist/table_pool.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include "ucs/base/bits.hpp"
#include "ucs/base/given_up.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc::worklist {
namespace {

constexpr size_t most_shared_bytes = size_t{1} << 20;  // of one allocation
constexpr size_t lists_per_allocation = 16;            // at least

// A small cache has small allocations, so that a few lists cannot hold much more than its bound.
size_t shared_bytes() noexcept {
    const size_t part = config().worklist_cache_size / 16;
    return std::min(most_shared_bytes,
                    std::max(round_up(part, table_pool::alignment), table_pool::alignment));
}

}  // namespace

void table_memory::keep_for_ever() noexcept {
    address_ = address();
    pool_ = nullptr;
    if (own_ != nullptr) {
        give_up_for_ever(own_.release());
    }
}

table_memory::~table_memory() {
    if (pool_ != nullptr && address_ != nullptr) {
        pool_->release(address_, size_);
    }
}

void table_pool::add_free(char *address, size_t size, char *of) {
    auto at = free_.emplace(address, range{size, of}).first;
    try {
        by_size_.emplace(size, address);
    } catch (...) {
        free_.erase(at);
        throw;
    }
}

void table_pool::remove_free(range_map::iterator at) noexcept {
    by_size_.erase({at->second.size, at->first});
    free_.erase(at);
}

ucs_status_t table_pool::add_shared(size_t size) {
    std::unique_ptr<gpu::memory> made;
    ucs_status_t status = where_.allocate_private(size, &made);
    if (status != UCS_OK) {
        return status;
    }
    char *const address = made->address();
    auto at = shared_.emplace(address, std::move(made)).first;
    try {
        add_free(address, size, address);
    } catch (...) {
        shared_.erase(at);
        throw;
    }
    ++num_unused_;
    return UCS_OK;
}

ucs_status_t table_pool::acquire(size_t size, table_memory &memory) {
    size = round_up(size, alignment);
    const size_t shared = shared_bytes();
    if (size <= shared / lists_per_allocation) {
        std::lock_guard<std::mutex> guard(mutex_);
        auto found = by_size_.lower_bound({size, nullptr});  // the smallest that is large enough
        if (found == by_size_.end() && add_shared(shared) == UCS_OK) {
            found = by_size_.lower_bound({size, nullptr});
        }
        if (found != by_size_.end()) {
            auto at = free_.find(found->second);
            const auto [address, free] = *at;
            if (free.size > size) {
                add_free(address + size, free.size - size, free.of);
            }
            num_unused_ -= free.size == shared_.at(free.of)->size() ? 1 : 0;
            remove_free(at);
            memory.pool_ = this;
            memory.address_ = address;
            memory.size_ = size;
            return UCS_OK;
        }
    }
    ucs_status_t status = where_.allocate_private(size, &memory.own_);
    memory.size_ = status == UCS_OK ? size : 0;
    return status;
}

void table_pool::release(char *address, size_t size) noexcept {
    std::unique_ptr<gpu::memory> unused;  // freed without the lock
    std::lock_guard<std::mutex> guard(mutex_);
    auto owner = std::prev(shared_.upper_bound(address));
    char *const of = owner->first;
    auto next = free_.upper_bound(address);
    if (next != free_.end() && next->second.of == of && next->first == address + size) {
        size += next->second.size;
        auto joined = next++;
        remove_free(joined);
    }
    if (next != free_.begin()) {
        auto before = std::prev(next);
        if (before->second.of == of && before->first + before->second.size == address) {
            address = before->first;
            size += before->second.size;
            remove_free(before);
        }
    }
    if (size == owner->second->size() && num_unused_ != 0) {
        unused = std::move(owner->second);
        shared_.erase(owner);
        return;
    }
    try {
        add_free(address, size, of);
        num_unused_ += size == owner->second->size() ? 1 : 0;
    } catch (...) {
        // no memory to note it: these bytes are not used again
    }
}

void table_pool::release_unused() noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    for (auto at = free_.begin(); at != free_.end();) {
        auto owner = shared_.find(at->first);
        auto next = std::next(at);
        if (owner != shared_.end() && at->second.size == owner->second->size()) {
            remove_free(at);
            shared_.erase(owner);
            --num_unused_;
        }
        at = next;
    }
}

size_t table_pool::num_shared() noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    return shared_.size();
}

}  // namespace cuda_nc::worklist
