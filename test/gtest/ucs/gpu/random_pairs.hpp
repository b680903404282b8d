// Random pair lists between two buffers, and what they must do, byte by byte.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "ucs/gpu/block_pair.hpp"

namespace cuda_nc::gpu::test {

struct random_pairs {
    struct place {
        size_t from, to;  // bytes from the begin of source and target
        size_t length;
    };
    std::vector<place> places;
    size_t source_size = 0, target_size = 0;

    std::vector<block_pair> at(const char *source, char *target) const {
        std::vector<block_pair> pairs;
        pairs.reserve(places.size());
        for (const place &one : places) {
            pairs.push_back({source + one.from, target + one.to, one.length});
        }
        return pairs;
    }
    // The target afterwards, from what it was before.
    void apply(const char *source, char *target) const {
        for (const place &one : places) {
            for (size_t i = 0; i < one.length; ++i) {
                target[one.to + i] = source[one.from + i];
            }
        }
    }
    size_t total() const {
        size_t sum = 0;
        for (const place &one : places) {
            sum += one.length;
        }
        return sum;
    }

    // Targets do not overlap; sources are anywhere. The order is random, and so are the gaps. Of
    // `kinds` lists each one has lengths of its own kind.
    static constexpr unsigned kinds = 7;
    static random_pairs make(std::mt19937_64 &random, size_t count, unsigned kind) {
        auto below = [&random](size_t limit) { return static_cast<size_t>(random() % limit); };
        auto length = [&]() -> size_t {
            switch (kind) {
                case 0:
                    return below(17);
                case 1:
                    return 4 << below(5);
                case 2:
                    return below(600);
                case 3:
                    return 4096;
                case 4:  // short ones beside long ones
                    return below(2) == 0 ? 8 : 1024 + below(3000);
                case 5:
                    return below(4) == 0 ? below(40001) : below(200);
                default:
                    return 40000 - below(2) * below(40001);
            }
        };
        constexpr size_t most_bytes = 2 << 20;
        const bool alike = below(2) == 0;  // sources and targets, modulo 16
        const size_t unit = size_t{1} << below(5);
        random_pairs made;
        size_t target = below(64), longest = 0;
        while (made.places.size() < count && target < most_bytes) {
            const size_t bytes = length();
            target = (target + unit - 1) / unit * unit;
            made.places.push_back({0, target, bytes});
            target += bytes + (below(3) == 0 ? 0 : below(100));
            longest = std::max(longest, bytes);
        }
        made.target_size = target + 64;
        made.source_size = made.target_size + longest;
        for (place &one : made.places) {
            one.from = below(made.source_size - one.length - 15) / unit * unit;
            one.from += alike ? (one.to - one.from) % 16 : 0;
        }
        std::shuffle(made.places.begin(), made.places.end(), random);
        return made;
    }
};

}  // namespace cuda_nc::gpu::test
