#include "ucs/exec/kernels/pipe_plan.hpp"

#include <algorithm>

namespace cuda_nc::exec {
namespace {

// A locator that serves both parts: they differ only in the dims that are left.
locator_kind common_locator(locator_kind a, locator_kind b) {
    return a == b ? a : locator_kind::any_dims;
}

bool same_kernel(const kernel_choice &a, const kernel_choice &b) {
    return a.how == b.how && a.locator == b.locator &&
           (a.how == method::windows || a.word_log2 == b.word_log2);
}

}  // namespace

bool add_pipe(const gpu::pipe_work &work, pipe_plan *plan_p) noexcept {
    pipe_batch &batch = plan_p->batch;
    const uint32_t most_parts = std::min(max_pipe_parts, max_pipe_entries - batch.num_entries);
    if (most_parts == 0) {
        return false;
    }
    pipe_arguments *parts = batch.entries + batch.num_entries;
    kernel_choice mover;
    uint32_t num_parts = 0;
    gpu::transfer all;
    all.dir = work.dir;
    all.layout = work.layout;
    all.base = work.base;
    all.packed = work.ring;  // chunks are multiples of 16: as aligned to each other as the ring
    all.packed_offset = work.packed_offset;
    all.length = work.length;
    for (uint64_t done = 0; done < work.length;) {
        if (num_parts == most_parts) {
            return false;
        }
        part &one = parts[num_parts].what;
        parts[num_parts].begin = done;
        done += cut_part(all, done, &one);
        kernel_choice one_mover = choose_mover(one, work.layout.align_log2);
        if (num_parts == 0) {
            mover = one_mover;
        } else {
            mover.locator = common_locator(mover.locator, one_mover.locator);
            mover.word_log2 = std::min(mover.word_log2, one_mover.word_log2);
            mover.how = mover.how == one_mover.how ? mover.how : method::windows;
        }
        ++num_parts;
    }
    if (batch.num_entries != 0 && !same_kernel(mover, plan_p->mover)) {
        return false;
    }
    plan_p->mover = mover;
    batch.first_block[batch.num_entries] = plan_p->num_blocks;
    plan_p->num_blocks += work.geometry.lanes;
    for (uint32_t i = 1; i < num_parts; ++i) {
        batch.first_block[batch.num_entries + i] = plan_p->num_blocks;
    }
    batch.num_entries += num_parts;
    pipe_arguments &a = parts[0];
    a.num_parts = num_parts;
    a.geometry = work.geometry;
    a.dir = work.dir;
    a.length = work.length;
    // Divided here: on a GPU that takes longer than all else before a kernel's first load.
    const uint64_t chunks = (work.length + work.geometry.chunk_size - 1) / work.geometry.chunk_size;
    a.chunks = static_cast<uint32_t>(chunks / work.geometry.lanes);
    a.longer_lanes = static_cast<uint32_t>(chunks % work.geometry.lanes);
    a.sequence = work.sequence;
    a.turn = work.turn;
    a.resumes = work.resumes;
    a.patience_ns = uint64_t{work.patience_us} * 1000;
    a.ring = work.ring;
    a.flags = work.flags;
    a.credits = work.credits;
    a.state = work.state;
    a.report = work.report;
    return true;
}

}  // namespace cuda_nc::exec
