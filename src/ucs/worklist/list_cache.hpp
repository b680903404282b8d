// The cache of work lists of one device.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "ucs/worklist/table_list.hpp"
#include "ucs/worklist/worklist.hpp"

namespace cuda_nc::worklist {

// Thread safe.
class list_cache {
  public:
    explicit list_cache(gpu::device &where) : services_(where) {}

    // Statuses of worklist::acquire(). Throws std::bad_alloc.
    ucs_status_t acquire(const layout_ref &source, work_list_ref *list_p);
    cache_statistics statistics();
    void trim();

  private:
    using list_ref = std::shared_ptr<table_list>;
    struct entry {
        list_ref list;
        std::list<entry *>::iterator incomplete;  // its place in incomplete_; end(): none
    };
    using position = std::list<entry>::iterator;
    // Destroyed after the lock is released, where that can be: the end of a list may wait for an
    // upload.
    using dropped_lists = std::vector<list_ref>;

    list_ref find(const layout &source);
    void insert(const list_ref &made, dropped_lists *dropped);
    bool is_full() const noexcept;
    void drop(position at, dropped_lists *dropped);
    void drop(const entry &which, dropped_lists *dropped);
    void drop_idle(dropped_lists *dropped);
    void release_sources(dropped_lists *dropped);

    list_services services_;  // outlives the lists
    std::mutex mutex_;
    std::list<entry> order_;  // most recently used first
    std::list<entry *>
        incomplete_;  // those that keep their layouts, least recently looked at first
    std::unordered_multimap<uint64_t, position> by_hash_;
    cache_statistics counts_;
};

}  // namespace cuda_nc::worklist
