#include "ucs/exec/kernels/plan/choose.hpp"

#include <algorithm>

#include "ucs/exec/kernels/move/threads.hpp"

namespace cuda_nc::exec {
namespace {

// log2 of the lanes for a block of `words` words on average: 3 or 4 words a lane (8 where words are
// short). With fewer words a lane more blocks are in flight, and fewer bytes of each.
uint32_t choose_lanes_log2(uint64_t words, bool bytes) {
    const uint64_t each = bytes ? (words > 64 ? 8 : 4) : (words > 48 ? 4 : 3);
    return log2_ceil(divide_up(words, each));
}

// How long a list's blocks are, for the lanes that move them.
struct block_sizes {
    unsigned word_log2;      // both sides are aligned to such words, and the part is whole ones
    uint64_t mean, longest;  // words of a block

    block_sizes(const part &a, unsigned align_log2)
        : word_log2(std::min(align_log2, trailing_zeros(a.first | a.length, 4))),
          mean((a.list_size / a.num_blocks) >> word_log2),
          longest(a.longest_block >> word_log2) {}
};
constexpr uint32_t short_block = 16;  // words on average
constexpr uint32_t most_lanes_log2 = 5, most_steps = 4;

// Whether move_block() can read the tables: narrow ones, of lengths that vary, of at most 1 GiB.
bool has_block_tables(const part &a) {
    return a.tables.displacement != nullptr && a.tables.packed != nullptr &&
           a.list_size <= (1u << 30);
}

}  // namespace

bool choose_blocks(const part &a, unsigned align_log2, const gpu::kernel_rules &rules,
                   kernel_choice *c) {
    constexpr uint64_t many_lanes = 1 << 16, most_items = uint64_t{1} << 31;
    constexpr uint64_t last_offset = (uint64_t{1} << 31) - 4096;  // lanes look a little beyond
    if (!has_block_tables(a) || uint64_t{a.first} + a.length > last_offset ||
        (a.num_dims == 0 && a.list_size / 2 > a.length)) {
        return false;  // the kernel looks at every block of the list
    }
    const block_sizes w(a, align_log2);
    const bool bytes = w.word_log2 < 2, packing = a.dir == gpu::direction::pack;
    const uint32_t limit = packing ? bytes ? rules.pack_blocks_1 : rules.pack_blocks_4
                           : bytes ? rules.unpack_blocks_1
                                   : rules.unpack_blocks_4;
    if (limit == 0 || (a.length > limit && w.mean > short_block)) {
        return false;
    }
    const uint32_t for_mean = std::min(most_lanes_log2, choose_lanes_log2(w.mean, bytes));
    const uint64_t most_words =
        most_steps * with_word(w.word_log2, [](auto width) {
            return static_cast<uint64_t>(unroll_block_words<decltype(width)::value>);
        });
    const uint32_t for_longest = log2_ceil(divide_up(w.longest, most_words));
    block_lanes &n = c->blocks;
    uint32_t passes = 1;
    if (a.num_dims != 0) {
        n.first_pass = a.by_list.quotient(a.first);
        passes = a.by_list.quotient(a.first + a.length - 1) - n.first_pass + 1;
    }
    n.lanes_log2 = std::max(for_mean, for_longest);
    const uint64_t items = (uint64_t{passes} * a.num_blocks) << n.lanes_log2;
    const bool mostly_idle = n.lanes_log2 > for_mean + 2 && items > many_lanes;
    if (n.lanes_log2 > most_lanes_log2 || mostly_idle || items > most_items) {
        return false;
    }
    n.items = static_cast<uint32_t>(items);
    c->how = method::blocks;
    c->word_log2 = static_cast<uint8_t>(w.word_log2);
    return true;
}

bool choose_short_blocks(const part &a, unsigned align_log2, kernel_choice *c) {
    if (!has_block_tables(a) || a.num_dims == 0 || a.num_blocks > max_short_list) {
        return false;
    }
    const block_sizes w(a, align_log2);
    if (w.word_log2 < least_pipe_block_log2 || w.mean > short_block ||
        w.longest > 4 * short_block) {
        return false;
    }
    c->word_log2 = static_cast<uint8_t>(w.word_log2);
    return true;
}

uint8_t mover_lanes_log2(const part &a, unsigned word_log2) noexcept {
    const uint64_t longest = a.longest_block >> word_log2;
    return static_cast<uint8_t>(log2_ceil(divide_up(longest, lane_words)));
}

}  // namespace cuda_nc::exec
