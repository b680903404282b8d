#include "tools/perftest/support/sectors.hpp"

#include <algorithm>
#include <vector>

namespace cuda_nc::tools {
namespace {

constexpr uint64_t most_blocks = uint64_t(1) << 26;  // a second; several where they are sorted

struct span {
    uint64_t begin, end;  // bytes behind the start of a sector
};

// Joins spans that come in ascending order; what remains has gaps between, so that only the sectors
// at its ends can be shared with others, and no two make up a whole one.
class joined_spans {
  public:
    explicit joined_spans(uint64_t sector_size) : size_(sector_size) {}

    // False where the span begins before the last one.
    bool add(const span &one) {
        if (one.begin < last_begin_) {
            return false;
        }
        last_begin_ = one.begin;
        if (one.begin <= open_.end) {
            open_.end = std::max(open_.end, one.end);
        } else {
            close();
            open_ = one;
        }
        return true;
    }
    sector_count finish() {
        close();
        open_ = {};
        return {touched_, touched_ - whole_};
    }

  private:
    void close() {
        const uint64_t first = open_.begin / size_, past = (open_.end + size_ - 1) / size_;
        const uint64_t first_whole = (open_.begin + size_ - 1) / size_;
        const uint64_t past_whole = open_.end / size_;
        touched_ += past - std::min(past, std::max(first, past_));
        whole_ += past_whole - std::min(past_whole, first_whole);
        past_ = std::max(past_, past);
    }

    const uint64_t size_;
    span open_{0, 0};
    uint64_t last_begin_ = 0;
    uint64_t past_ = 0;  // sectors below were counted where they are touched
    uint64_t touched_ = 0, whole_ = 0;
};

// Calls action(span) for each block until it returns false; whether it never did.
template <class Action>
bool for_each_span(const layout &what, uint64_t skew, Action &&action) {
    const uint64_t low = static_cast<uint64_t>(what.lower_bound());
    layout_cursor cursor(what, 0);
    for (block one = cursor.next(UINT64_MAX); one.length != 0; one = cursor.next(UINT64_MAX)) {
        const uint64_t begin = static_cast<uint64_t>(one.displacement) - low + skew;
        if (!action(span{begin, begin + one.length})) {
            return false;
        }
    }
    return true;
}

std::vector<span> sorted_spans(const layout &what, uint64_t skew) {
    std::vector<span> all;
    all.reserve(what.total_blocks());
    for_each_span(what, skew, [&](const span &one) {
        all.push_back(one);
        return true;
    });
    std::sort(all.begin(), all.end(),
              [](const span &a, const span &b) { return a.begin < b.begin; });
    return all;
}

}  // namespace

std::optional<sector_count> count_sectors(const layout &what, uint64_t skew, uint64_t sector_size) {
    const layout &ordered = what.in_memory_order();
    if (ordered.total_blocks() > most_blocks) {
        return std::nullopt;
    }
    joined_spans ascending(sector_size);
    if (for_each_span(ordered, skew, [&](const span &one) { return ascending.add(one); })) {
        return ascending.finish();
    }
    joined_spans sorted(sector_size);
    for (const span &one : sorted_spans(ordered, skew)) {
        sorted.add(one);
    }
    return sorted.finish();
}

std::optional<uint64_t> touched_bytes(const layout &what, gpu::direction dir, uint64_t skew,
                                      uint64_t sector_size) {
    const std::optional<sector_count> laid_out = count_sectors(what, skew, sector_size);
    if (!laid_out) {
        return std::nullopt;
    }
    const uint64_t size = what.packed_size();
    const sector_count packed{(size + sector_size - 1) / sector_size, size % sector_size != 0};
    const sector_count &read = dir == gpu::direction::unpack ? packed : *laid_out;
    const sector_count &written = dir == gpu::direction::pack ? packed : *laid_out;
    return (read.touched + written.touched + written.in_part) * sector_size;
}

}  // namespace cuda_nc::tools
