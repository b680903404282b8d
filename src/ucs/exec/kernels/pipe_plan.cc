#include "ucs/exec/kernels/pipe_plan.hpp"

#include <algorithm>

namespace cuda_nc::exec {
namespace {

// A locator that serves both parts: they differ only in the dims that are left.
locator_kind common_locator(locator_kind a, locator_kind b) {
    return a == b ? a : locator_kind::any_dims;
}

}  // namespace

bool plan_pipe(const gpu::pipe_work &work, pipe_plan *plan_p) noexcept {
    *plan_p = pipe_plan();
    pipe_arguments &a = plan_p->arguments;
    gpu::transfer all;
    all.dir = work.dir;
    all.layout = work.layout;
    all.base = work.base;
    all.packed = work.ring;  // chunks are multiples of 16: as aligned to each other as the ring
    all.packed_offset = work.packed_offset;
    all.length = work.length;
    for (uint64_t done = 0; done < work.length;) {
        if (a.num_parts == max_pipe_parts) {
            return false;
        }
        part &one = a.parts[a.num_parts];
        a.begin[a.num_parts] = done;
        done += cut_part(all, done, &one);
        kernel_choice mover = choose_mover(one, work.layout.align_log2);
        if (a.num_parts == 0) {
            plan_p->mover = mover;
        } else {
            kernel_choice &common = plan_p->mover;
            common.locator = common_locator(common.locator, mover.locator);
            common.word_log2 = std::min(common.word_log2, mover.word_log2);
            common.how = common.how == mover.how ? mover.how : method::windows;
        }
        ++a.num_parts;
    }
    a.geometry = work.geometry;
    a.dir = work.dir;
    a.length = work.length;
    a.sequence = work.sequence;
    a.turn = work.turn;
    a.patience_ns = uint64_t{work.patience_us} * 1000;
    a.ring = work.ring;
    a.flags = work.flags;
    a.credits = work.credits;
    a.state = work.state;
    a.report = work.report;
    return true;
}

}  // namespace cuda_nc::exec
