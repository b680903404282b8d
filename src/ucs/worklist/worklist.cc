#include "ucs/worklist/worklist.hpp"

#include <list>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "ucs/base/settings.hpp"
#include "ucs/base/statistics.hpp"
#include "ucs/worklist/table_list.hpp"

namespace cuda_nc::worklist {
namespace {

// For a layout without tables.
class trivial_list final : public work_list {
  public:
    explicit trivial_list(layout_ref source) noexcept : source_(std::move(source)) {}
    ucs_status_t prepare(gpu::stream &, uint64_t) noexcept override { return UCS_OK; }
    uint64_t part_end(uint64_t, uint64_t end) const noexcept override { return end; }
    const layout_view &view() const noexcept override { return source_->view(); }
    size_t device_bytes() const noexcept override { return 0; }

  private:
    const layout_ref source_;
};

// The lists of one device, most recently used first.
class list_cache {
  public:
    explicit list_cache(gpu::device &where) : where_(where), staging_(where) {}

    ucs_status_t acquire(const layout_ref &source, work_list_ref *list_p);
    cache_statistics statistics();
    void trim();

  private:
    using entry = std::shared_ptr<table_list>;
    using position = std::list<entry>::iterator;

    entry find(const layout &source);
    void insert(const entry &made, std::vector<entry> *dropped);
    void drop(position at, std::vector<entry> *dropped);
    void drop_idle(std::vector<entry> *dropped);

    gpu::device &where_;
    upload_staging staging_;
    std::atomic<uint64_t> bytes_moved_{0};
    std::mutex mutex_;
    std::list<entry> order_;
    std::unordered_multimap<uint64_t, position> by_hash_;
    cache_statistics counts_;
};

list_cache::entry list_cache::find(const layout &source) {
    auto range = by_hash_.equal_range(source.hash().low);
    for (auto at = range.first; at != range.second; ++at) {
        const entry &one = *at->second;
        if (!one->broken() && one->source().hash() == source.hash() &&
            one->source().equal(source)) {
            order_.splice(order_.begin(), order_, at->second);
            return order_.front();
        }
    }
    return nullptr;
}

void list_cache::drop(position at, std::vector<entry> *dropped) {
    dropped->push_back(*at);  // may throw: nothing has changed by then
    auto range = by_hash_.equal_range((*at)->source().hash().low);
    for (auto named = range.first; named != range.second; ++named) {
        if (named->second == at) {
            by_hash_.erase(named);
            break;
        }
    }
    counts_.bytes -= (*at)->device_bytes();
    ++counts_.evictions;
    order_.erase(at);
}

void list_cache::drop_idle(std::vector<entry> *dropped) {
    for (auto at = order_.begin(); at != order_.end();) {
        auto next = std::next(at);
        if (at->use_count() == 1) {
            drop(at, dropped);
        }
        at = next;
    }
}

void list_cache::insert(const entry &made, std::vector<entry> *dropped) {
    order_.push_front(made);
    try {
        by_hash_.emplace(made->source().hash().low, order_.begin());
    } catch (...) {
        order_.pop_front();
        throw;
    }
    counts_.bytes += made->device_bytes();
    while (counts_.bytes > config().worklist_cache_size && !order_.empty()) {
        drop(std::prev(order_.end()), dropped);
    }
}

// `dropped` is destroyed after the lock is released: that may wait for an upload.
ucs_status_t list_cache::acquire(const layout_ref &source, work_list_ref *list_p) {
    std::vector<entry> dropped;
    std::lock_guard<std::mutex> guard(mutex_);
    if (entry found = find(*source)) {
        ++counts_.hits;
        *list_p = std::move(found);
        return UCS_OK;
    }
    ++counts_.misses;
    entry made;
    ucs_status_t status = table_list::make(where_, staging_, &bytes_moved_, source, &made);
    if (status == UCS_ERR_NO_MEMORY) {
        drop_idle(&dropped);
        dropped.clear();  // frees GPU memory before the second try
        status = table_list::make(where_, staging_, &bytes_moved_, source, &made);
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
    now.bytes_moved = bytes_moved_.load(std::memory_order_relaxed);
    return now;
}

void list_cache::trim() {
    std::vector<entry> dropped;
    std::lock_guard<std::mutex> guard(mutex_);
    drop_idle(&dropped);
}

// Never destroyed: messages may end while the process exits.
struct all_caches {
    std::mutex mutex;
    std::map<gpu::device *, std::unique_ptr<list_cache>> of;
};

all_caches &get_caches() {
    static auto *only = new all_caches;
    return *only;
}

std::string describe_lists() {
    all_caches &all = get_caches();
    std::lock_guard<std::mutex> guard(all.mutex);
    cache_statistics sum;
    for (auto &one : all.of) {
        cache_statistics s = one.second->statistics();
        sum.hits += s.hits;
        sum.misses += s.misses;
        sum.evictions += s.evictions;
        sum.bytes += s.bytes;
        sum.bytes_moved += s.bytes_moved;
    }
    if (sum.hits + sum.misses == 0) {
        return "";
    }
    return "work lists: " + std::to_string(sum.hits) + " hits, " + std::to_string(sum.misses) +
           " misses, " + std::to_string(sum.evictions) + " evictions, " +
           std::to_string(sum.bytes) + " bytes in GPU memory, " + std::to_string(sum.bytes_moved) +
           " bytes moved there";
}

list_cache &cache_of(gpu::device &where) {
    all_caches &all = get_caches();
    std::lock_guard<std::mutex> guard(all.mutex);
    std::unique_ptr<list_cache> &one = all.of[&where];
    if (one == nullptr) {
        one = std::make_unique<list_cache>(where);
        add_statistics_source(describe_lists);
    }
    return *one;
}

}  // namespace

ucs_status_t acquire(gpu::device &where, const layout_ref &source, work_list_ref *list_p) noexcept {
    try {
        if (source->view().num_blocks <= 1) {
            *list_p = std::make_shared<trivial_list>(source);
            return UCS_OK;
        }
        return cache_of(where).acquire(source, list_p);
    } catch (...) {
        return UCS_ERR_NO_MEMORY;
    }
}

ucs_status_t launch(work_list &list, gpu::stream &on, gpu::transfer work) noexcept {
    const uint64_t end = work.packed_offset + work.length;
    gpu::end_words *const ends = work.ends;
    work.layout = list.view();
    while (work.packed_offset < end) {
        const uint64_t until = list.part_end(work.packed_offset, end);
        work.length = until - work.packed_offset;
        work.ends = until == end ? ends : nullptr;  // the end of the last launch is the end of all
        ucs_status_t status = list.prepare(on, until);
        if (status == UCS_OK) {
            status = on.launch(work);
        }
        if (status != UCS_OK) {
            return status;
        }
        if (work.dir != gpu::direction::copy) {
            work.packed += work.length;
        }
        work.packed_offset = until;
    }
    return UCS_OK;
}

cache_statistics statistics(gpu::device &where) noexcept {
    try {
        return cache_of(where).statistics();
    } catch (...) {
        return {};
    }
}

void trim(gpu::device &where) noexcept {
    try {
        cache_of(where).trim();
    } catch (...) {
    }
}

}  // namespace cuda_nc::worklist
