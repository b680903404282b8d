#include "ucs/worklist/worklist.hpp"

#include <map>
#include <mutex>
#include <string>

#include "ucs/base/statistics.hpp"
#include "ucs/worklist/list_cache.hpp"

namespace cuda_nc::worklist {
namespace {

// For a layout without tables.
class trivial_list final : public work_list {
  public:
    explicit trivial_list(layout_ref source) noexcept : source_(std::move(source)) {}
    ucs_status_t prepare(gpu::stream &, uint64_t) noexcept override { return UCS_OK; }
    bool is_ready(uint64_t) noexcept override { return true; }
    uint64_t part_end(uint64_t, uint64_t end) const noexcept override { return end; }
    const layout_view &view() const noexcept override { return source_->view(); }
    size_t device_bytes() const noexcept override { return 0; }

  private:
    const layout_ref source_;
};

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
        sum.lists += s.lists;
        sum.bytes += s.bytes;
        sum.bytes_moved += s.bytes_moved;
    }
    if (sum.hits + sum.misses == 0) {
        return "";
    }
    return "work lists: " + std::to_string(sum.hits) + " hits, " + std::to_string(sum.misses) +
           " misses, " + std::to_string(sum.evictions) + " evictions, " +
           std::to_string(sum.lists) + " kept with " + std::to_string(sum.bytes) +
           " bytes in GPU memory, " + std::to_string(sum.bytes_moved) + " bytes moved there";
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
        if (!needs_tables(*source)) {
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
