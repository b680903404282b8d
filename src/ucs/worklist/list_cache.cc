#include "ucs/worklist/list_cache.hpp"

#include <algorithm>
#include <iterator>

#include "ucs/base/settings.hpp"

namespace cuda_nc::worklist {
namespace {

// A miss adds one list that keeps its layout, so looking at more than one at each miss lets none of
// them wait for long.
constexpr size_t looked_at_by_a_miss = 4;

}  // namespace

list_cache::list_ref list_cache::find(const layout &source) {
    auto range = by_hash_.equal_range(source.hash().low);
    for (auto at = range.first; at != range.second; ++at) {
        const list_ref &one = at->second->list;
        if (!one->broken() && one->serves(source)) {
            order_.splice(order_.begin(), order_, at->second);
            return one;
        }
    }
    return nullptr;
}

void list_cache::drop(position at, dropped_lists *dropped) {
    dropped->push_back(at->list);  // may throw: nothing has changed by then
    auto range = by_hash_.equal_range(at->list->hash().low);
    by_hash_.erase(std::find_if(range.first, range.second,
                                [&](const auto &named) { return named.second == at; }));
    if (at->incomplete != incomplete_.end()) {
        incomplete_.erase(at->incomplete);
    }
    counts_.bytes -= at->list->device_bytes();
    --counts_.lists;
    ++counts_.evictions;
    order_.erase(at);
}

void list_cache::drop(const entry &which, dropped_lists *dropped) {
    auto range = by_hash_.equal_range(which.list->hash().low);
    drop(std::find_if(range.first, range.second,
                      [&](const auto &named) { return &*named.second == &which; })
             ->second,
         dropped);
}

void list_cache::drop_idle(dropped_lists *dropped) {
    for (auto at = order_.begin(); at != order_.end();) {
        auto next = std::next(at);
        if (at->list.use_count() == 1) {
            drop(at, dropped);
        }
        at = next;
    }
}

// Lists whose tables are all in GPU memory give their layouts back. Those that will never be
// complete, because their datatype is gone, leave.
void list_cache::release_sources(dropped_lists *dropped) {
    const size_t most = std::min(looked_at_by_a_miss, incomplete_.size());
    for (size_t i = 0; i < most; ++i) {
        entry &one = *incomplete_.front();
        switch (one.list->release_source()) {
            case table_list::source_state::released:
                incomplete_.pop_front();
                one.incomplete = incomplete_.end();
                continue;
            case table_list::source_state::abandoned:
                if (one.list.use_count() == 1) {
                    drop(one, dropped);
                    continue;
                }
                break;
            case table_list::source_state::needed:
                break;
        }
        incomplete_.splice(incomplete_.end(), incomplete_, incomplete_.begin());
    }
}

bool list_cache::is_full() const noexcept {
    return counts_.bytes > config().worklist_cache_size ||
           counts_.lists > config().worklist_cache_lists;
}

void list_cache::insert(const list_ref &made, dropped_lists *dropped) {
    std::list<entry> one;
    one.push_front({made, incomplete_.end()});
    one.front().incomplete = incomplete_.insert(incomplete_.end(), &one.front());
    try {
        by_hash_.emplace(made->hash().low, one.begin());  // stays valid in order_
    } catch (...) {
        incomplete_.pop_back();
        throw;
    }
    order_.splice(order_.begin(), one);
    counts_.bytes += made->device_bytes();
    ++counts_.lists;
    while (is_full() && !order_.empty()) {
        drop(std::prev(order_.end()), dropped);
    }
}

ucs_status_t list_cache::acquire(const layout_ref &source, work_list_ref *list_p) {
    dropped_lists dropped;
    std::lock_guard<std::mutex> guard(mutex_);
    if (list_ref found = find(*source)) {
        ++counts_.hits;
        *list_p = std::move(found);
        return UCS_OK;
    }
    ++counts_.misses;
    release_sources(&dropped);
    list_ref made;
    ucs_status_t status = table_list::make(services_, source, &made);
    if (status == UCS_ERR_NO_MEMORY) {
        drop_idle(&dropped);
        dropped.clear();
        services_.pool.release_unused();  // frees GPU memory before the second try
        status = table_list::make(services_, source, &made);
    }
    if (status != UCS_OK) {
        return status;
    }
    insert(made, &dropped);
    *list_p = std::move(made);
    return UCS_OK;
}

cache_statistics list_cache::statistics() {
    std::lock_guard<std::mutex> guard(mutex_);
    cache_statistics now = counts_;
    now.bytes_moved = services_.bytes_moved.load(std::memory_order_relaxed);
    return now;
}

void list_cache::trim() {
    {
        dropped_lists dropped;
        std::lock_guard<std::mutex> guard(mutex_);
        drop_idle(&dropped);
    }
    services_.pool.release_unused();
}

}  // namespace cuda_nc::worklist
