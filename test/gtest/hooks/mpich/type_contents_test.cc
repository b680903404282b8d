// Types by the calls that made them, over a made-up MPICH.
#include "hooks/mpich/type_contents.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace cuda_nc::hooks {
namespace {

struct made_type {
    int combiner;
    std::vector<int> integers;
    std::vector<intptr_t> addresses;
    std::vector<int> types;
    intptr_t extent;
    std::vector<type_block> blocks;  // of predefined ones
    std::vector<long long> counts;   // of types made with large counts
};

constexpr int named = 1, contiguous = 3, vector = 4, hvector = 6, indexed = 7, hindexed = 9,
              indexed_block = 10, structure = 12, subarray = 13, darray = 14, resized = 18,
              hindexed_block = 19;
constexpr int of_4 = 0, pair = 1;  // predefined: 4 bytes; 8 bytes and 4, 16 apart

std::vector<made_type> all;
int num_freed;

int get_envelope(int type, long long *integers_p, long long *addresses_p, long long *counts_p,
                 long long *types_p, int *combiner_p) {
    const made_type &of = all[static_cast<size_t>(type)];
    *integers_p = static_cast<long long>(of.integers.size());
    *addresses_p = static_cast<long long>(of.addresses.size());
    *counts_p = static_cast<long long>(of.counts.size());
    *types_p = static_cast<long long>(of.types.size());
    *combiner_p = of.combiner;
    return 0;
}

int get_contents(int type, long long, long long, long long, long long, int *integers,
                 intptr_t *addresses, long long *counts, int *types) {
    const made_type &of = all[static_cast<size_t>(type)];
    std::copy(of.integers.begin(), of.integers.end(), integers);
    std::copy(of.addresses.begin(), of.addresses.end(), addresses);
    std::copy(of.counts.begin(), of.counts.end(), counts);
    std::copy(of.types.begin(), of.types.end(), types);
    return 0;
}

int get_extent(int type, intptr_t *lower_bound_p, intptr_t *extent_p) {
    *lower_bound_p = 0;
    *extent_p = all[static_cast<size_t>(type)].extent;
    return 0;
}

int get_size(int type, int *size_p) {
    *size_p = 0;
    for (const type_block &one : all[static_cast<size_t>(type)].blocks) {
        *size_p += static_cast<int>(one.length);
    }
    return 0;
}

int free_type(int *) {
    ++num_freed;
    return 0;
}

int get_blocks(int type, intptr_t, type_block *blocks, intptr_t, intptr_t *number_p) {
    const std::vector<type_block> &of = all[static_cast<size_t>(type)].blocks;
    std::copy(of.begin(), of.end(), blocks);
    *number_p = static_cast<intptr_t>(of.size());
    return 0;
}

const type_functions functions = {get_envelope, get_contents, get_extent,
                                  get_size,     free_type,    get_blocks};

class type_contents : public testing::Test {
  protected:
    type_contents() {
        all = {{named, {}, {}, {}, 4, {{0, 4}}, {}}, {named, {}, {}, {}, 16, {{0, 8}, {8, 4}}, {}}};
        num_freed = 0;
    }
    int make(int combiner, std::vector<int> integers, std::vector<intptr_t> addresses,
             std::vector<int> types, intptr_t extent) {
        all.push_back({combiner,
                       std::move(integers),
                       std::move(addresses),
                       std::move(types),
                       extent,
                       {},
                       {}});
        return static_cast<int>(all.size()) - 1;
    }
    int make_large(int combiner, std::vector<long long> counts, std::vector<int> types,
                   intptr_t extent, std::vector<int> integers = {}) {
        all.push_back(
            {combiner, std::move(integers), {}, std::move(types), extent, {}, std::move(counts)});
        return static_cast<int>(all.size()) - 1;
    }
    // Where the element's 4-byte units lie, in type-map order.
    static std::vector<int64_t> units(int type) {
        layout_ref made = read_contents(functions, type);
        std::vector<int64_t> found;
        for (uint64_t offset = 0; made != nullptr && offset < made->packed_size(); offset += 4) {
            found.push_back(made->view().locate(offset).displacement);
        }
        return found;
    }
};

using list = std::vector<int64_t>;

TEST_F(type_contents, of_strided_types) {
    EXPECT_EQ(units(make(contiguous, {3}, {}, {of_4}, 12)), (list{0, 4, 8}));
    EXPECT_EQ(units(make(vector, {2, 2, 3}, {}, {of_4}, 20)), (list{0, 4, 12, 16}));
    EXPECT_EQ(units(make(vector, {2, 1, -1}, {}, {of_4}, 8)), (list{0, -4}));
    EXPECT_EQ(units(make(hvector, {3, 1}, {-10}, {of_4}, 24)), (list{0, -10, -20}));
}

TEST_F(type_contents, of_lists_of_blocks) {
    EXPECT_EQ(units(make(indexed, {2, 1, 2, 5, 1}, {}, {of_4}, 0)), (list{20, 4, 8}));
    EXPECT_EQ(units(make(hindexed, {2, 1, 2}, {50, 2}, {of_4}, 0)), (list{50, 2, 6}));
    EXPECT_EQ(units(make(indexed_block, {2, 2, 4, 0}, {}, {of_4}, 0)), (list{16, 20, 0, 4}));
    EXPECT_EQ(units(make(hindexed_block, {2, 1}, {9, -3}, {of_4}, 0)), (list{9, -3}));
}

TEST_F(type_contents, of_types_with_negative_extents_inside) {
    const int backwards = make(resized, {}, {0, -8}, {of_4}, -8);
    EXPECT_EQ(units(make(contiguous, {3}, {}, {backwards}, 0)), (list{0, -8, -16}));
    EXPECT_EQ(units(make(vector, {2, 2, 2}, {}, {backwards}, 0)), (list{0, -8, -16, -24}));
    EXPECT_EQ(num_freed, 2) << "the reference to the inner type that each reading got";
}

TEST_F(type_contents, of_structures_and_pairs) {
    EXPECT_EQ(units(make(structure, {2, 1, 2}, {100, 0}, {pair, of_4}, 0)),
              (list{100, 104, 108, 0, 4}));
    EXPECT_EQ(units(make(contiguous, {2}, {}, {pair}, 32)), (list{0, 4, 8, 16, 20, 24}));
}

TEST_F(type_contents, of_arrays) {
    constexpr int c_order = 56, fortran_order = 57, block = 121, cyclic = 122, none = 123;
    EXPECT_EQ(units(make(subarray, {2, 3, 4, 2, 2, 1, 1, c_order}, {}, {of_4}, 48)),
              (list{20, 24, 36, 40}));
    EXPECT_EQ(units(make(subarray, {2, 3, 4, 2, 2, 1, 1, fortran_order}, {}, {of_4}, 48)),
              (list{16, 20, 28, 32}));
    EXPECT_EQ(units(make(darray, {2, 1, 1, 5, block, -49767, 2, c_order}, {}, {of_4}, 20)),
              (list{12, 16}));
    EXPECT_EQ(units(make(darray, {4, 2, 2, 3, 4, cyclic, none, 1, -49767, 4, 1, c_order}, {},
                         {of_4}, 48)),
              (list{32, 36, 40, 44}));
}

TEST_F(type_contents, of_types_made_with_large_counts) {
    EXPECT_EQ(units(make_large(contiguous, {3}, {of_4}, 12)), (list{0, 4, 8}));
    EXPECT_EQ(units(make_large(vector, {2, 2, 3}, {of_4}, 20)), (list{0, 4, 12, 16}));
    EXPECT_EQ(units(make_large(hvector, {3, 1, -10}, {of_4}, 24)), (list{0, -10, -20}));
    EXPECT_EQ(units(make_large(indexed, {2, 1, 2, 5, 1}, {of_4}, 0)), (list{20, 4, 8}));
    EXPECT_EQ(units(make_large(hindexed, {2, 1, 2, 50, 2}, {of_4}, 0)), (list{50, 2, 6}));
    EXPECT_EQ(units(make_large(indexed_block, {2, 2, 4, 0}, {of_4}, 0)), (list{16, 20, 0, 4}));
    EXPECT_EQ(units(make_large(hindexed_block, {2, 1, 9, -3}, {of_4}, 0)), (list{9, -3}));
    EXPECT_EQ(units(make_large(structure, {2, 1, 2, 100, 0}, {pair, of_4}, 0)),
              (list{100, 104, 108, 0, 4}));
    EXPECT_EQ(units(make_large(resized, {0, -8}, {of_4}, -8)), (list{0}));
    constexpr int c_order = 56, cyclic = 122, none = 123;
    EXPECT_EQ(units(make_large(subarray, {3, 4, 2, 2, 1, 1}, {of_4}, 48, {2, c_order})),
              (list{20, 24, 36, 40}));
    EXPECT_EQ(units(make_large(darray, {3, 4}, {of_4}, 48,
                               {4, 2, 2, cyclic, none, 1, -49767, 4, 1, c_order})),
              (list{32, 36, 40, 44}));
}

// One long block each, in place of one for each element, of which there would be too many.
TEST_F(type_contents, touching_elements_are_one_block) {
    constexpr int million = 1 << 20, c_order = 56, fortran_order = 57;
    constexpr int block = 121, cyclic = 122;
    const int sparse = make(resized, {}, {0, 8}, {of_4}, 8);
    const struct {
        const char *what;
        int type;
        uint64_t bytes;
    } types[] = {
        {"contiguous", make(contiguous, {64 * million}, {}, {of_4}, 0), 256ull * million},
        {"vector of one block", make(vector, {1, 64 * million, 3}, {}, {of_4}, 0),
         256ull * million},
        {"vector of touching blocks", make(vector, {32 * million, 2, 2}, {}, {of_4}, 0),
         256ull * million},
        {"vector of elements that touch by its stride",
         make_large(hvector, {1ll << 40, 1, 4}, {sparse}, 0), 4ull << 40},
        {"blocks of a list", make(indexed, {2, 32 * million, 1, 0, 32 * million}, {}, {of_4}, 0),
         128ull * million + 4},
        {"structure", make(structure, {2, 32 * million, 8}, {-128 * million, 0}, {of_4, of_4}, 0),
         128ull * million + 32},
        {"whole array",
         make(subarray, {3, 512, 512, 512, 512, 512, 512, 0, 0, 0, c_order}, {}, {of_4}, 0),
         512ull * million},
        {"some planes of an array",
         make(subarray, {3, 512, 512, 512, 512, 512, 400, 0, 0, 9, fortran_order}, {}, {of_4}, 0),
         400ull * million},
        {"array of large counts",
         make_large(subarray, {1ll << 40, 1ll << 39, 5}, {of_4}, 0, {1, c_order}), 2ull << 40},
        {"distributed array",
         make_large(darray, {1ll << 40, 16}, {of_4}, 0,
                    {2, 1, 2, block, cyclic, -49767, -49767, 2, 1, c_order}),
         32ull << 40},
    };
    for (const auto &one : types) {
        layout_ref made = read_contents(functions, one.type);
        ASSERT_NE(made, nullptr) << one.what;
        EXPECT_EQ(made->packed_size(), one.bytes) << one.what;
        EXPECT_EQ(made->total_blocks(), 1u) << one.what;
    }
}

TEST_F(type_contents, elements_that_touch_backwards_stay_apart) {
    const int backwards = make(resized, {}, {0, -4}, {of_4}, -4);
    EXPECT_EQ(units(make(contiguous, {3}, {}, {backwards}, 0)), (list{0, -4, -8}));
    EXPECT_EQ(units(make(hindexed, {3, 1, 1, 1}, {8, 4, 12}, {of_4}, 0)), (list{8, 4, 12}));
    const int same_place = make(resized, {}, {0, 0}, {of_4}, 0);
    EXPECT_EQ(units(make(contiguous, {3}, {}, {same_place}, 0)), (list{0, 0, 0}));
}

TEST_F(type_contents, without_bytes_takes_no_time) {
    constexpr int many = 2000000000;
    const int none = make(contiguous, {0}, {}, {of_4}, 0);
    for (const int type :
         {make(vector, {many, many, 1}, {}, {none}, 0), make(vector, {many, 0, 1}, {}, {of_4}, 0),
          make(contiguous, {-many}, {}, {of_4}, 0)}) {
        layout_ref made = read_contents(functions, type);
        ASSERT_NE(made, nullptr);
        EXPECT_EQ(made->packed_size(), 0u);
    }
}

TEST_F(type_contents, of_more_bytes_than_can_be_addressed_is_refused) {
    constexpr long long far = 1ll << 62;
    for (const int type :
         {make_large(contiguous, {far}, {of_4}, 0), make_large(vector, {2, 1, far}, {of_4}, 0),
          make_large(hvector, {4, 1, far}, {of_4}, 0),
          make_large(hindexed, {2, far, far, 0, far}, {of_4}, 0),
          make_large(indexed_block, {1, 1, far}, {of_4}, 0)}) {
        EXPECT_EQ(read_contents(functions, type), nullptr);
    }
    EXPECT_EQ(units(make_large(vector, {1, 2, far}, {of_4}, 0)), (list{0, 4}))
        << "the stride of one block does not matter";
}

TEST_F(type_contents, of_unknown_combiners_are_refused) {
    EXPECT_EQ(read_contents(functions, make(101, {3}, {}, {of_4}, 12)), nullptr);
    const int unknown = make(5, {1, 1, 1}, {}, {of_4}, 4);
    EXPECT_EQ(read_contents(functions, make(contiguous, {1}, {}, {unknown}, 4)), nullptr);
    EXPECT_EQ(read_contents(functions, make(contiguous, {1}, {}, {0x4c820100}, 4)), nullptr)
        << "an inner type that only MPICH itself knows";
    EXPECT_EQ(read_contents(functions, make(contiguous, {1 << 25}, {}, {pair}, 0)), nullptr)
        << "too many blocks";
}

}  // namespace
}  // namespace cuda_nc::hooks
