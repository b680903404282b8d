// The work list of a layout with block tables, on one GPU.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "ucs/worklist/upload_staging.hpp"
#include "ucs/worklist/worklist.hpp"

namespace cuda_nc::worklist {

class table_list final : public work_list {
  public:
    // Allocates GPU memory; uploads nothing yet. UCS_ERR_NO_MEMORY; UCS_ERR_UNSUPPORTED for lists
    // of 2^32 blocks and more.
    static ucs_status_t make(gpu::device &where, upload_staging &staging,
                             std::atomic<uint64_t> *bytes_moved, const layout_ref &source,
                             std::shared_ptr<table_list> *list_p);
    ~table_list() override;

    ucs_status_t prepare(gpu::stream &on, uint64_t packed_end) noexcept override;
    uint64_t part_end(uint64_t begin, uint64_t end) const noexcept override;
    const layout_view &view() const noexcept override { return view_; }
    size_t device_bytes() const noexcept override { return memory_->size(); }

    const layout &source() const noexcept { return *source_; }
    // An upload failed: the list must not be used any more.
    bool broken() const noexcept { return broken_.load(std::memory_order_relaxed); }

  private:
    // One call's uploads, as long as they may be in flight.
    struct upload {
        const gpu::stream *on;
        std::unique_ptr<gpu::event> done;
        uint64_t first_frame;
    };

    table_list(gpu::device &where, upload_staging &staging, std::atomic<uint64_t> *bytes_moved,
               layout_ref source);
    void choose_units() noexcept;
    template <class Action>
    void for_each_table(Action &&action);
    uint64_t frames_needed(uint64_t packed_end) const noexcept;
    uint64_t with_next_part(uint64_t frames) const noexcept;
    void index_units(uint64_t packed_end);
    ucs_status_t order_behind_uploads(gpu::stream &on, uint64_t frames) noexcept;
    ucs_status_t upload_frames(gpu::stream &on, uint64_t frames) noexcept;
    ucs_status_t send(gpu::stream &on, const void *device_table, const void *host_table,
                      size_t entry, uint64_t begin, uint64_t end) noexcept;

    gpu::device &where_;
    upload_staging &staging_;
    std::atomic<uint64_t> *bytes_moved_;
    const layout_ref source_;  // keeps the host's tables
    layout_view view_;         // the GPU's tables
    std::unique_ptr<gpu::memory> memory_;
    uint64_t frames_;
    uint64_t num_units_ = 0;       // entries of the unit index
    std::vector<uint32_t> units_;  // the host's copy, filled as parts are uploaded
    uint64_t unit_cursor_ = 0;     // the block that holds the last indexed unit

    mutable std::mutex mutex_;   // guards what follows, and units_
    uint64_t ready_frames_ = 0;  // uploaded, or enqueued
    uint64_t units_sent_ = 0;
    std::vector<upload> uploads_;
    std::atomic<bool> broken_{false};
};

}  // namespace cuda_nc::worklist
