// The work list of a layout with block tables, on one GPU.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "ucs/worklist/table_pool.hpp"
#include "ucs/worklist/upload_staging.hpp"
#include "ucs/worklist/worklist.hpp"

namespace cuda_nc::worklist {

// What all lists of a device share.
struct list_services {
    explicit list_services(gpu::device &its_device) noexcept
        : device(its_device), staging(its_device), pool(its_device) {}

    gpu::device &device;
    upload_staging staging;
    table_pool pool;
    std::atomic<uint64_t> bytes_moved{0};  // over the bus
};

// Keeps its layout, and by that the tables in host memory, until all tables are in GPU memory. From
// then on the layout is known by its hash and its numbers alone.
class table_list final : public work_list {
  public:
    // Allocates GPU memory; uploads nothing yet. UCS_ERR_NO_MEMORY; UCS_ERR_UNSUPPORTED for lists
    // of 2^32 blocks and more. Throws std::bad_alloc.
    static ucs_status_t make(list_services &services, const layout_ref &source,
                             std::shared_ptr<table_list> *list_p);
    ~table_list() override;

    ucs_status_t prepare(gpu::stream &on, uint64_t packed_end) noexcept override;
    bool is_ready(uint64_t packed_end) noexcept override;
    uint64_t part_end(uint64_t begin, uint64_t end) const noexcept override;
    const layout_view &view() const noexcept override { return view_; }
    size_t device_bytes() const noexcept override { return memory_.size(); }

    // Whether this is the list of `wanted`. Different layouts pass with a probability of 2^-128:
    // that of equal hashes.
    bool serves(const layout &wanted) const noexcept;
    const content_hash &hash() const noexcept { return hash_; }

    enum class source_state {
        needed,    // for tables that are missing, or whose upload is under way
        released,  // the GPU has all tables: the layout is given back
        abandoned  // tables are missing, and nobody but this list keeps the layout
    };
    // Gives the layout back where it is not needed any more. Does not wait.
    source_state release_source() noexcept;
    // An upload failed: the list must not be used any more.
    bool broken() const noexcept { return broken_.load(std::memory_order_relaxed); }

  private:
    // One call's uploads, as long as they may be in flight.
    struct upload {
        const gpu::stream *on;
        std::unique_ptr<gpu::event> done;
        uint64_t first_frame;
    };

    table_list(list_services &services, const layout_ref &source);
    void choose_units() noexcept;
    template <class Action>
    void for_each_table(Action &&action);
    uint64_t frames_needed(uint64_t packed_end) const noexcept;
    uint64_t with_next_part(uint64_t frames) const noexcept;
    void index_units(uint64_t packed_end);
    ucs_status_t order_behind_uploads(gpu::stream &on, uint64_t frames) noexcept;
    void release_source_if_complete() noexcept;
    ucs_status_t upload_frames(gpu::stream &on, uint64_t frames) noexcept;
    ucs_status_t send(gpu::stream &on, const void *device_table, const void *host_table,
                      size_t entry, uint64_t begin, uint64_t end) noexcept;

    list_services &services_;
    const content_hash hash_;
    layout_view view_;  // the GPU's tables
    table_memory memory_;
    uint64_t frames_;
    uint64_t num_units_ = 0;  // entries of the unit index

    mutable std::mutex mutex_;     // guards what follows
    layout_ref source_;            // with the host's tables; null: the GPU has them all
    std::vector<uint32_t> units_;  // the host's copy, filled as parts are uploaded
    uint64_t unit_cursor_ = 0;     // the block that holds the last indexed unit
    uint64_t ready_frames_ = 0;    // uploaded, or enqueued
    uint64_t units_sent_ = 0;
    std::vector<upload> uploads_;
    std::atomic<bool> broken_{false};
};

}  // namespace cuda_nc::worklist
