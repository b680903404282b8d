// Random nested datatypes as plain type maps: the oracle of property tests. Written from the MPI
// standard's definition of type maps and bounds; shares no code with the product.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace cuda_nc::test {

struct map_entry {
    int64_t displacement;
    uint64_t length;  // may be 0
};

struct random_type {
    std::vector<map_entry> map;  // in type-map order, not merged
    int64_t lower = 0, upper = 0;
    std::string text;  // how it was made

    int64_t extent() const { return upper - lower; }
    uint64_t size() const;
};

struct type_limits {
    uint64_t bytes;    // packed bytes of a type, about
    uint64_t entries;  // of its map
    unsigned depth;    // constructors around a basic type
    int64_t far;       // magnitude of the largest random gap between blocks, bytes
};

class random_types {
  public:
    random_types(uint64_t seed, const type_limits &limits) : random_(seed), limits_(limits) {}

    random_type make() { return make(below(limits_.depth + 1)); }

    uint64_t below(uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }
    int64_t between(int64_t least, int64_t most) {
        return least + static_cast<int64_t>(below(static_cast<uint64_t>(most - least) + 1));
    }
    std::mt19937_64 &engine() { return random_; }

  private:
    random_type make(uint64_t depth);
    random_type basic();
    random_type contiguous(const random_type &inner);
    random_type vector(const random_type &inner, bool in_bytes);
    random_type indexed(const random_type &inner, bool in_bytes, bool same_length);
    random_type structure(const random_type &first, uint64_t depth);
    random_type subarray(const random_type &inner);
    random_type resized(const random_type &inner);

    // How many copies of `inner` a constructor may use; sometimes 0.
    uint64_t copies(const random_type &inner);
    int64_t gap(int64_t unit);
    // `count` copies of `inner`, an extent apart, the first at `displacement`.
    static void place(random_type *type, const random_type &inner, int64_t displacement,
                      uint64_t count, bool *empty);

    std::mt19937_64 random_;
    type_limits limits_;
};

}  // namespace cuda_nc::test
