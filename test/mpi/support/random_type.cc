#include "random_type.hpp"

#include <algorithm>

namespace mpi_test {
namespace {

constexpr int64_t most_copies = 7;

// Whether `copies` of `old`, spread over `span`, keep the limits.
bool fits(const made_type &old, int64_t copies, int64_t span, const random_type_limits &limits) {
    return old.map().size() * copies <= limits.bytes &&
           old.map().runs().size() * static_cast<size_t>(copies) <= limits.runs &&
           span <= limits.span;
}

int64_t reach(const made_type &old) {
    const type_map &map = old.map();
    return std::max({std::abs(map.extent()), map.true_ub() - map.true_lb(), std::abs(map.lb()),
                     std::abs(map.true_lb()), int64_t{1}});
}

// Displacements: with `apart` without overlap, in any order; else anywhere.
std::vector<placement> random_blocks(random_stream &random, int64_t unit, bool apart, int count) {
    std::vector<placement> blocks;
    int64_t at = random.between(-3, 3) * unit;
    for (int i = 0; i < count; ++i) {
        int length = static_cast<int>(random.between(0, 3));
        if (apart) {
            blocks.push_back({length, at});
            at += length * unit + random.between(0, 2 * unit);
        } else {
            blocks.push_back({length, random.between(-9 * unit, 9 * unit)});
        }
    }
    if (apart && random.one_in(2)) {  // not only ascending
        for (size_t i = blocks.size(); i > 1; --i) {
            std::swap(blocks[i - 1], blocks[random.next() % i]);
        }
    }
    return blocks;
}

std::vector<int64_t> displacements_of(const std::vector<placement> &blocks) {
    std::vector<int64_t> result;
    for (const placement &block : blocks) {
        result.push_back(block.displacement);
    }
    return result;
}

made_type random_struct(random_stream &random, const made_type &old) {
    std::vector<struct_member> members;
    int64_t at = random.between(-40, 40);
    for (int i = static_cast<int>(random.between(1, 4)); i > 0; --i) {
        const made_type &simple = basic_types()[random.next() % basic_types().size()];
        const made_type &member = random.one_in(2) ? old : simple;
        int count = static_cast<int>(random.between(1, 3));
        members.push_back({{count, at - member.map().true_lb()}, &member});
        at += count * reach(member) + random.between(0, 20);
    }
    return structure(members);
}

made_type random_subarray(random_stream &random, const made_type &old) {
    std::vector<dimension> dimensions;
    for (int i = static_cast<int>(random.between(1, 3)); i > 0; --i) {
        int size = static_cast<int>(random.between(1, 4));
        int part = static_cast<int>(random.between(1, size));
        dimensions.push_back({size, part, static_cast<int>(random.between(0, size - part))});
    }
    return subarray(dimensions, random.one_in(2), old);
}

made_type random_darray(random_stream &random, const made_type &old) {
    std::vector<distribution> dimensions;
    int total = 1;
    for (int i = static_cast<int>(random.between(1, 3)); i > 0; --i) {
        static const int kinds[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC,
                                    MPI_DISTRIBUTE_NONE};
        distribution d = {static_cast<int>(random.between(1, 5)), kinds[random.next() % 3],
                          MPI_DISTRIBUTE_DFLT_DARG, static_cast<int>(random.between(1, 3))};
        if (d.kind == MPI_DISTRIBUTE_NONE) {
            d.processes = 1;
        } else if (random.one_in(2)) {
            int least =
                d.kind == MPI_DISTRIBUTE_BLOCK ? (d.size + d.processes - 1) / d.processes : 1;
            d.argument = static_cast<int>(random.between(least, d.size + 1));
        }
        total *= d.processes;
        dimensions.push_back(d);
    }
    return darray(static_cast<int>(random.next() % static_cast<uint64_t>(total)), dimensions,
                  random.one_in(2), old);
}

made_type random_resized(random_stream &random, const made_type &old) {
    int64_t size = reach(old);
    switch (random.next() % 5) {
        case 4:  // as if there were no gap
            return resized(0, old.map().size(), old);
        case 0:  // the next copy in front
            return resized(old.map().true_ub() - old.map().extent(), -size, old);
        case 1:  // a gap behind
            return resized(old.map().lb(), size + random.between(0, 64), old);
        case 2:
            return resized(old.map().true_lb(), old.map().true_ub() - old.map().true_lb(), old);
        default:
            return resized(random.between(-64, 64), random.between(-2 * size, 2 * size), old);
    }
}

// One more constructor around `old`.
made_type wrapped(random_stream &random, const made_type &old) {
    int64_t extent = std::max<int64_t>(std::abs(old.map().extent()), 1);
    bool apart = !random.one_in(4);
    int count = static_cast<int>(random.between(0, 5)) + 1 - static_cast<int>(random.one_in(8));
    int length = static_cast<int>(random.between(1, 4)) - static_cast<int>(random.one_in(10));
    int64_t stride = apart ? random.between(length, length + 6) : random.between(-8, 8);
    stride = random.one_in(3) ? -stride : stride;
    switch (random.next() % 12) {
        case 0:
            return contiguous(count, old);
        case 1:
            return vector(count, length, static_cast<int>(stride), old);
        case 2:
            return hvector(count, length,
                           random.one_in(4) ? -1 : stride * extent + random.between(0, 7), old);
        case 3:
            return hvector(count, length, stride * extent, old);
        case 4:
            return indexed(random_blocks(random, 1, apart, count), old);
        case 5:
            return hindexed(random_blocks(random, extent, apart, count), old);
        case 6:
            return indexed_block(1, displacements_of(random_blocks(random, 1, apart, count)), old);
        case 7:
            return hindexed_block(
                length, displacements_of(random_blocks(random, 4 * extent, apart, count)), old);
        case 8:
            return random_struct(random, old);
        case 9:
            return random_subarray(random, old);
        case 10:
            return random_darray(random, old);
        default:
            return random.one_in(6) ? duplicate(old) : random_resized(random, old);
    }
}

}  // namespace

made_type random_type(random_stream &random, const random_type_limits &limits) {
    const made_type &start = basic_types()[random.next() % basic_types().size()];
    made_type type = duplicate(start);
    for (int64_t i = random.between(1, limits.depth); i > 0; --i) {
        // a wrapper makes about 24 copies at most; the largest arrays are dropped below
        if (!fits(type, 24, 64 * reach(type), limits)) {
            break;
        }
        if (random.one_in(3)) {  // what is made of a committed type may be committed, too
            type.commit();
        }
        made_type next = wrapped(random, type);
        if (fits(next, 1, reach(next), limits)) {
            type = std::move(next);
        }
    }
    if (limits.bytes > (64 << 10) && type.map().size() > 0) {  // a large message: many copies
        int64_t copies = std::min(limits.bytes / type.map().size(), limits.span / reach(type));
        copies = std::min(copies, static_cast<int64_t>(limits.runs / type.map().runs().size()));
        if (copies > most_copies) {
            type = contiguous(static_cast<int>(random.between(most_copies, copies)), type);
        }
    }
    type.commit();
    return type;
}

}  // namespace mpi_test
