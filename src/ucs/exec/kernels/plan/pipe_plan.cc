#include "ucs/exec/kernels/plan/pipe_plan.hpp"

#include <algorithm>

namespace cuda_nc::exec {
namespace {

bool is_of_dims(locator_kind kind) {
    return kind <= locator_kind::any_dims;
}

locator_kind common_locator(locator_kind a, locator_kind b) {
    return a == b                           ? a
           : is_of_dims(a) && is_of_dims(b) ? locator_kind::any_dims
                                            : locator_kind::mixed;
}

bool same_kernel(const kernel_choice &a, const kernel_choice &b) {
    return a.how == b.how && a.locator == b.locator &&
           (a.how == method::windows || a.word_log2 == b.word_log2);
}

// Whether the mover is for blocks of different lengths, whose tables every part has (progressions
// too).
bool has_tables(const kernel_choice &mover) {
    return mover.locator == locator_kind::varying || mover.locator == locator_kind::progression;
}

// Collects the parts of a side and finds a mover for all of them.
class part_collector {
  public:
    part_collector(pipe_arguments *entries, uint32_t room, uint32_t chunk_size) noexcept
        : entries_(entries), room_(room), chunk_size_(chunk_size) {}

    // False: too many parts.
    bool add(const gpu::transfer &all) noexcept {
        uint32_t added = 0;
        for (uint64_t done = 0; done < all.length; ++added) {
            if (number_ == room_ || added == max_pipe_parts) {
                return false;
            }
            pipe_arguments &one = entries_[number_];
            one.begin = done;
            done += cut_part(all, done, &one.what);
            const kernel_choice its = choose_mover(one.what, all.layout.align_log2, chunk_size_);
            if (number_ == 0) {
                mover_ = its;
            } else {
                merge(its);
            }
            ++number_;
        }
        return true;
    }

    uint32_t number() const noexcept { return number_; }
    const kernel_choice &mover() const noexcept { return mover_; }

  private:
    void merge(const kernel_choice &its) noexcept {
        mover_.word_log2 = std::min(mover_.word_log2, its.word_log2);
        if (has_tables(mover_) && has_tables(its)) {
            const bool differ = mover_.locator != its.locator || mover_.how != its.how;
            if (differ) {
                mover_.locator = locator_kind::varying;
                mover_.how = method::units;
            }
            return;
        }
        mover_.locator = common_locator(mover_.locator, its.locator);
        mover_.how = mover_.how == its.how && mover_.locator != locator_kind::mixed
                         ? mover_.how
                         : method::windows;
    }

    pipe_arguments *const entries_;
    const uint32_t room_, chunk_size_;
    uint32_t number_ = 0;
    kernel_choice mover_;
};

bool add_parts(const gpu::pipe_work &work, part_collector *to) noexcept {
    gpu::transfer all;
    all.dir = work.dir;
    all.layout = *work.layout;
    all.base = work.base;
    all.packed = work.ring;  // chunk sizes are multiples of 16: slots are as aligned as the ring
    all.packed_offset = work.packed_offset;
    all.length = work.length;
    if (!work.pulls) {
        return to->add(all);
    }
    if (work.source == nullptr) {
        all.dir = gpu::direction::copy;
        all.base = work.source_base;
        all.packed = work.base;
        return to->add(all);
    }
    alignas(16) static char slot[16];  // as aligned as a thread block's shared memory
    all.packed = slot;
    all.dir = gpu::direction::pack;
    all.layout = *work.source;
    all.base = work.source_base;
    if (!to->add(all)) {
        return false;
    }
    all.dir = gpu::direction::unpack;
    all.layout = *work.layout;
    all.base = work.base;
    return to->add(all);
}

}  // namespace

bool add_pipe(const gpu::pipe_work &work, pipe_plan *plan_p) noexcept {
    pipe_batch &batch = plan_p->batch;
    pipe_arguments *parts = batch.entries + batch.num_entries;
    part_collector collected(parts, max_pipe_entries - batch.num_entries, work.geometry.chunk_size);
    if (!add_parts(work, &collected) ||
        (batch.num_entries != 0 && !same_kernel(collected.mover(), plan_p->mover))) {
        return false;
    }
    const uint32_t num_parts = collected.number();
    plan_p->mover = collected.mover();
    if (work.pulls && work.source != nullptr) {
        plan_p->slot_size = std::max(plan_p->slot_size, work.geometry.chunk_size);
    }
    batch.first_thread_block[batch.num_entries] = plan_p->num_thread_blocks;
    plan_p->num_thread_blocks += work.geometry.channels;
    if (plan_p->mover.how == method::blocks) {
        for (uint32_t i = 0; i < num_parts; ++i) {
            parts[i].what.lanes_log2 = mover_lanes_log2(parts[i].what, plan_p->mover.word_log2);
        }
    }
    for (uint32_t i = 1; i < num_parts; ++i) {
        batch.first_thread_block[batch.num_entries + i] = plan_p->num_thread_blocks;
    }
    batch.num_entries += num_parts;
    pipe_arguments &a = parts[0];
    a.num_parts = num_parts;
    a.geometry = work.geometry;
    a.dir = work.dir;
    a.pulls = work.pulls;
    a.into_own_memory = work.pulls && work.into_own_memory;
    a.length = work.length;
    // Divided here, because on a GPU a division takes longer than all else before a kernel's first
    // load.
    const uint64_t chunks = divide_up(work.length, work.geometry.chunk_size);
    a.chunks = static_cast<uint32_t>(chunks / work.geometry.channels);
    a.longer_channels = static_cast<uint32_t>(chunks % work.geometry.channels);
    a.sequence = work.sequence;
    a.launch_number = work.launch_number;
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
