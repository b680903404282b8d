// Packs and unpacks ranges of one request's bytes between GPU memory and host memory: the steps
// that the pipelines are made of. It chooses between kernels that access pinned host memory
// (zero-copy) and kernels within GPU memory with a copy across the bus (staged).
#pragma once

#include <cstdint>

#include "ucp/dt/staging.hpp"
#include "ucs/layout/layout.hpp"
#include "ucs/worklist/worklist.hpp"

namespace cuda_nc::dt {

class device_packer {
  public:
    // `dir` is pack or unpack, `memory` what holds the laid-out bytes. UCS_ERR_NO_DEVICE where
    // there is no such GPU. UCS_OK does not promise a work list: see has_kernels().
    ucs_status_t open(gpu::direction dir, layout_ref &&what, char *base,
                      const gpu::memory_info &memory) noexcept;
    void close() noexcept;  // all work must have ended

    uint64_t packed_size() const noexcept { return layout_->packed_size(); }
    const layout &what() const noexcept { return *layout_; }
    gpu::direction dir() const noexcept { return dir_; }
    char *base() const noexcept { return base_; }
    const gpu::allocation_info &allocation() const noexcept { return allocation_; }
    device_staging &staging() const noexcept { return *staging_; }
    // False: the layout has no work list (GPU memory is exhausted); only copies of blocks are left.
    bool has_kernels() const noexcept { return has_kernels_; }
    // By the machine's figures and the settings.
    bool zero_copy() const noexcept;
    int ordinal() const noexcept { return ordinal_; }

    // Begins pack or unpack of `ranges`, with `buffer` as the packed side: one short range as an
    // order to the GPU's mover, if that takes it, else on a stream. After an error a part of the
    // work may have been enqueued. *enqueued_p: then has_ended() and wait() tell when that part has
    // ended. Else nothing runs any more; *lost_p: the end cannot be known, so the stream was given
    // up, which waits for its work as far as the GPU can tell, and the buffer must be abandoned.
    ucs_status_t enqueue(staging_buffer &buffer, const staged_range *ranges, size_t num_ranges,
                         bool *enqueued_p, bool *lost_p) noexcept;

    // Enqueues pack or unpack of packed bytes [offset, offset + length) at `packed`, in any memory
    // that the GPU reaches, and then records `done`. Where a launch fails it enqueues a copy for
    // each block instead. UCS_ERR_NO_RESOURCE without a work list. After an error nothing of it
    // runs any more.
    ucs_status_t enqueue_packed(uint64_t offset, uint64_t length, char *packed,
                                gpu::event &done) noexcept;

    // The same by copies alone, of bytes in the order of type map or of memory.
    ucs_status_t enqueue_copies(uint64_t offset, uint64_t length, char *packed,
                                bool in_memory_order, gpu::event &done) noexcept;

    // Packs or unpacks the first `length` packed bytes, which lie at `packed` in memory of this
    // kind that the GPU reaches, and returns when they are there. UCS_ERR_NO_RESOURCE without a
    // work list. After an error nothing of it runs any more.
    ucs_status_t move_packed(uint64_t length, char *packed, gpu::memory_kind lies_in) noexcept;

    // To be called before one side of a pipe is launched on the caller's stream: fills in the
    // request's direction, layout and base. `in_memory_order`: both sides are laid out alike, so
    // both may take the bytes in the order of their addresses.
    ucs_status_t prepare_pipe(gpu::pipe_work &work, gpu::stream &on, bool in_memory_order) noexcept;
    // The same for what no stream orders; UCS_INPROGRESS: the layout's tables are not on the GPU.
    ucs_status_t describe_pipe(gpu::pipe_work &work, bool in_memory_order) noexcept;

    // Whether what uses the buffer has ended.
    static bool has_ended(staging_buffer &buffer) noexcept;
    // Waits for it. An order that no kernel took is launched. After an error of a launch the stream
    // is given up for all requests: further work on it would fail too.
    ucs_status_t wait(staging_buffer &buffer) noexcept;

    // Moves packed bytes [offset, offset + length) through the bounce buffer that all requests
    // share; returns when done. A sender packs ahead there, for its next calls.
    // UCS_ERR_NO_MEMORY: there is no bounce buffer.
    ucs_status_t bounce(uint64_t offset, char *packed, size_t length) noexcept;

    // The same by one copy for each block: slow, needs nothing but a stream.
    ucs_status_t copy_blocks(uint64_t offset, char *packed, size_t length) noexcept;

  private:
    // Chosen at the first call: most direct messages enqueue nothing here.
    shared_stream &stream() noexcept;
    // Of stream(), whose mutex is held. Null: it cannot be made, and the next stream() is another.
    gpu::stream *ready(shared_stream &shared) noexcept;
    // Work on stream() and its end, on another one where the first fails.
    template <typename F>
    ucs_status_t enqueue_with_end(gpu::event &done, F &&enqueue) noexcept;
    // Of the layout's tables, where it has some. The stream must be locked.
    ucs_status_t prepare_tables(gpu::stream &on, uint64_t packed_end) noexcept {
        return list_ != nullptr ? list_->prepare(on, packed_end) : UCS_OK;
    }
    bool tables_ready(uint64_t packed_end) const noexcept {
        return list_ == nullptr || list_->is_ready(packed_end);
    }
    // Contiguous bytes go by a copy engine where no mover takes them: that needs no multiprocessor,
    // nor waits behind kernels that do.
    bool is_copied() const noexcept;
    // What kernels are given. There must be kernels.
    const layout_view &view() const noexcept {
        return list_ != nullptr ? list_->view() : layout_->view();
    }
    ucs_status_t copy_blocks_once(uint64_t offset, char *packed, size_t length) noexcept;
    // Enqueues move_packed(). `by`: GPU memory between the laid-out bytes and host memory, where
    // kernels are not to reach that; null: none.
    ucs_status_t enqueue_first(gpu::stream &on, uint64_t length, char *packed,
                               const gpu::memory *by) noexcept;
    // move_packed() by the GPU's mover. UCS_ERR_CANCELED: it is to be launched.
    ucs_status_t order_first(const gpu::transfer &work) noexcept;
    void fill_in(gpu::pipe_work &work, bool in_memory_order) const noexcept;
    // The move of a range, with `packed` as its packed side.
    gpu::transfer describe(const gpu::memory &packed, const staged_range &range) const noexcept;
    // False: it is to be launched.
    bool give_order(staging_buffer &buffer, const staged_range &range) noexcept;
    // enqueue() without orders.
    ucs_status_t launch(staging_buffer &buffer, const staged_range *ranges, size_t num_ranges,
                        bool *enqueued_p, bool *lost_p) noexcept;
    ucs_status_t wait_for_launch(staging_buffer &buffer) noexcept;
    // `only`: this is all the work of the buffer.
    ucs_status_t enqueue_range(gpu::stream &stream, staging_buffer &buffer,
                               const staged_range &range, bool staged, bool only) noexcept;
    // One copy for each block of `ordered`, in order on `stream`.
    ucs_status_t enqueue_blocks(gpu::stream &stream, const layout &ordered, uint64_t offset,
                                char *packed, uint64_t length) noexcept;
    ucs_status_t run(staging_buffer &buffer, const staged_range &range, bool *lost_p) noexcept;

    gpu::direction dir_ = gpu::direction::pack;
    bool has_kernels_ = false;
    bool into_own_memory_ = false;  // as of a transfer
    int ordinal_ = 0;
    char *base_ = nullptr;
    gpu::allocation_info allocation_;
    uint64_t serial_ = 0;  // 0: none before the first bounce()
    device_staging *staging_ = nullptr;
    // Null before the first stream(), and where that one is gone and cannot be made again.
    shared_stream *stream_ = nullptr;
    layout_ref layout_;
    worklist::work_list_ref list_;  // null where the layout needs no tables, or has no kernels
};

}  // namespace cuda_nc::dt
