#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ucs/layout/block_storage.hpp"
#include "ucs/layout/layout.hpp"
#include "ucs/layout/layout_fold.hpp"
#include "ucs/layout/layout_make.hpp"

namespace cuda_nc {
namespace {

// A pattern of blocks that repeats, each time at another start.
class periodic_fold {
  public:
    explicit periodic_fold(std::vector<block> pattern) : pattern_(std::move(pattern)) {}

    bool add(const block &next) noexcept {
        const block &expected = pattern_[position_];
        if (next.length != expected.length) {
            return false;
        }
        if (position_ == 0) {
            if (!starts_.add(next.displacement)) {
                return false;
            }
            start_ = next.displacement;
        } else if (static_cast<uint64_t>(next.displacement) - static_cast<uint64_t>(start_) !=
                   static_cast<uint64_t>(expected.displacement)) {
            return false;
        }
        position_ = position_ + 1 == pattern_.size() ? 0 : position_ + 1;
        ++blocks_;
        return true;
    }

    bool complete() const noexcept { return position_ == 0 && starts_.complete(); }
    const start_folder &starts() const noexcept { return starts_; }
    const std::vector<block> &pattern() const noexcept { return pattern_; }

    template <typename F>
    void for_each_block(F visit) const {
        for (uint64_t i = 0; i < blocks_; ++i) {
            const block &one = pattern_[i % pattern_.size()];
            visit(starts_.start_of(i / pattern_.size()) + one.displacement, one.length);
        }
    }

  private:
    std::vector<block> pattern_;  // displacements relative to the first block's
    start_folder starts_;
    int64_t start_ = 0;    // of the current repetition
    size_t position_ = 0;  // in the pattern
    uint64_t blocks_ = 0;
};

// The first `period` blocks of `seen` as a pattern that all of `seen` repeats, or nothing.
std::optional<periodic_fold> try_period(const std::vector<block> &seen, size_t period) {
    std::vector<block> pattern(seen.begin(), seen.begin() + period);
    int64_t first = pattern[0].displacement;
    for (block &one : pattern) {
        one.displacement = static_cast<int64_t>(static_cast<uint64_t>(one.displacement) -
                                                static_cast<uint64_t>(first));
    }
    periodic_fold fold(std::move(pattern));
    for (const block &one : seen) {
        if (!fold.add(one)) {
            return std::nullopt;
        }
    }
    return fold;
}

// The blocks of an irregular list until they are compressed.
struct raw_list {
    std::vector<int64_t> displacements;
    std::vector<uint64_t> lengths;  // one entry while all are equal
};

// Memory that is new to a process costs a page fault for each 4 KiB, which takes longer than all
// else that is done with a list of pages. So a builder leaves its own to the next one: of the
// process one list, of 2^18 blocks at most.
std::atomic<raw_list *> spare_list{nullptr};

std::unique_ptr<raw_list> take_list() {
    std::unique_ptr<raw_list> spare(spare_list.exchange(nullptr));
    return spare != nullptr ? std::move(spare) : std::make_unique<raw_list>();
}

void leave_list(std::unique_ptr<raw_list> one) noexcept {
    constexpr size_t most = size_t{1} << 18;
    if (one != nullptr && one->displacements.capacity() <= most &&
        one->lengths.capacity() <= most) {
        one->displacements.clear();
        one->lengths.clear();
        const size_t capacity = one->displacements.capacity();
        one.reset(spare_list.exchange(one.release()));
        if (one != nullptr && one->displacements.capacity() > capacity) {
            one.reset(spare_list.exchange(one.release()));  // the longer one stays
        }
    }
}

}  // namespace

// Blocks go through three stages. The first ones wait in `first` until a period is found that fits
// them. From then on `fold` counts them. At the first block that does not fit, all blocks move into
// the irregular list, and later ones are appended there.
struct layout_builder::state {
    static constexpr size_t first_blocks = 512;

    block pending{0, 0};  // still grows while blocks touch
    std::vector<block> first;
    std::optional<periodic_fold> fold;
    std::unique_ptr<raw_list> list;  // the irregular one; null: it is not irregular yet
    uint64_t only_length = 0;        // of its blocks; 0: there are none, or of several lengths
    uint64_t packed_size = 0;
    int64_t lowest = INT64_MAX, highest = INT64_MIN;  // of all bytes, and behind them
    bool invalid = false;

    ~state() { leave_list(std::move(list)); }

    void append_irregular(int64_t displacement, uint64_t length) {
        if (length != only_length) {
            append_length(length);
        }
        list->displacements.push_back(displacement);
    }

    // Another one than all before.
    void append_length(uint64_t length) {
        std::vector<uint64_t> &lengths = list->lengths;
        if (only_length != 0) {
            lengths.resize(list->displacements.size(), only_length);
        }
        only_length = lengths.empty() ? length : 0;
        lengths.push_back(length);
    }

    void go_irregular() {
        list = take_list();
        auto append = [this](int64_t displacement, uint64_t length) {
            append_irregular(displacement, length);
        };
        if (fold) {
            fold->for_each_block(append);
            fold.reset();
        }
        for (const block &one : first) {
            append(one.displacement, one.length);
        }
        first.clear();
    }

    // Finds the smallest period that fits the first blocks; `whole`: they must end with a whole
    // pattern.
    void choose_period(bool whole) {
        size_t longest = std::min<size_t>(max_short_list, whole ? first.size() : first.size() / 2);
        for (size_t period = 1; period <= longest; ++period) {
            if (whole && first.size() % period != 0) {
                continue;
            }
            auto candidate = try_period(first, period);
            if (candidate && (!whole || candidate->complete())) {
                fold = std::move(candidate);
                first.clear();
                return;
            }
        }
        go_irregular();
    }

    void add(const block &next) {
        if (list != nullptr) {
            append_irregular(next.displacement, next.length);
        } else if (fold) {
            if (!fold->add(next)) {
                go_irregular();
                append_irregular(next.displacement, next.length);
            }
        } else {
            first.push_back(next);
            if (first.size() == first_blocks) {
                choose_period(false);
            }
        }
    }

    layout_ref finish() {
        if (pending.length != 0) {
            add(pending);
        }
        if (invalid || packed_size == 0) {
            return invalid ? nullptr : make_layout(nullptr, 0, nullptr);
        }
        if (!first.empty()) {
            choose_period(true);
        }
        if (fold && !fold->complete()) {
            go_irregular();
        }
        if (list != nullptr) {
            return make_layout(std::make_shared<block_storage>(list->displacements, list->lengths),
                               0, nullptr);
        }
        raw_list pattern;
        bool uniform = true;
        for (const block &one : fold->pattern()) {
            pattern.displacements.push_back(fold->starts().first() + one.displacement);
            pattern.lengths.push_back(one.length);
            uniform = uniform && one.length == pattern.lengths[0];
        }
        if (uniform) {
            pattern.lengths.resize(1);
        }
        layout_dim dims[max_dims];
        unsigned levels = fold->starts().levels();
        for (unsigned d = 0; d < levels; ++d) {
            dims[d] = fold->starts().dim(d);
        }
        return make_layout(std::make_shared<block_storage>(pattern.displacements, pattern.lengths),
                           levels, dims);
    }
};

layout_builder::layout_builder() : state_(std::make_unique<state>()) {}
layout_builder::~layout_builder() = default;
layout_builder::layout_builder(layout_builder &&) noexcept = default;
layout_builder &layout_builder::operator=(layout_builder &&) noexcept = default;

void layout_builder::append(int64_t displacement, uint64_t length) {
    if (length == 0) {
        return;
    }
    state &s = *state_;
    int64_t end;
    if (length > uint64_t(INT64_MAX) ||
        __builtin_add_overflow(displacement, int64_t(length), &end) ||
        s.packed_size + length > uint64_t(INT64_MAX)) {
        s.invalid = true;
        return;
    }
    s.lowest = std::min(s.lowest, displacement);
    s.highest = std::max(s.highest, end);
    int64_t span;
    if (__builtin_sub_overflow(s.highest, s.lowest, &span)) {
        s.invalid = true;
        return;
    }
    s.packed_size += length;
    if (s.pending.length != 0 &&
        displacement == s.pending.displacement + static_cast<int64_t>(s.pending.length)) {
        s.pending.length += length;
        return;
    }
    if (s.pending.length != 0) {
        s.add(s.pending);
    }
    s.pending = {displacement, length};
}

layout_ref layout_builder::finish() {
    layout_ref result = state_->finish();
    state_ = std::make_unique<state>();
    return result;
}

layout_ref one_block(uint64_t length) {
    layout_builder builder;
    builder.append(0, length);
    return builder.finish();
}

}  // namespace cuda_nc
