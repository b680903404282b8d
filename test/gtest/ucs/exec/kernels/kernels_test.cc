// The kernels' code on the CPU against a naive byte map.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "ucs/exec/kernels/emulate.hpp"
#include "ucs/exec/kernels/random_case.hpp"
#include "ucs/exec/kernels/watched_buffers.hpp"

namespace cuda_nc::exec::test {
namespace {

// Runs one case; the description of what went wrong, or nothing.
std::string run_case(const random_case &c, uint64_t seed, std::map<std::string, int> *used,
                     const kernel_rules &rules = usual_rules) {
    const bool copy = c.dir == gpu::direction::copy;
    buffer laid_out(c.span(), c.laid_out_skew, seed);
    buffer other(copy ? c.span() : c.length, c.packed_skew, seed + 1);
    buffer &source = c.dir == gpu::direction::unpack ? other : laid_out;
    buffer &target = c.dir == gpu::direction::unpack ? laid_out : other;
    const std::vector<int64_t> map = c.bytes();
    std::vector<char> expected(target.data, target.data + target.size);
    for (uint64_t i = 0; i < c.length; ++i) {
        int64_t at = map[c.packed_offset + i] - c.layout->lower();
        int64_t from = c.dir == gpu::direction::unpack ? static_cast<int64_t>(i) : at;
        int64_t to = c.dir == gpu::direction::pack ? static_cast<int64_t>(i) : at;
        expected[static_cast<size_t>(to)] = source.data[from];
    }
    gpu::transfer work = c.transfer();
    work.base = laid_out.data - c.layout->lower();
    work.packed = copy ? other.data - c.layout->lower() : other.data;
    gpu::end_words ends;
    work.ends = seed % 3 == 0 ? &ends : nullptr;
    watch_buffers(source, target);
    kernel_limits limits;
    limits.num_sms = c.num_sms;
    limits.rules = &rules;
    for (const kernel_choice &one : emulate(work, limits)) {
        ++(*used)[std::to_string(static_cast<int>(one.how)) + "/" +
                  (one.how == method::tiles ? "" : std::to_string(static_cast<int>(one.locator))) +
                  "/" + std::to_string(one.word_log2)];
    }
    if (!watch.fault.empty()) {
        return watch.fault;
    }
    for (size_t i = 0; i < target.size; ++i) {
        if (target.data[i] != expected[i]) {
            return "byte " + std::to_string(i) + " of " + std::to_string(target.size);
        }
    }
    uint64_t written = 0;
    for (uint8_t one : watch.writes) {
        written += one;
    }
    return written == c.length ? "" : "wrote " + std::to_string(written) + " bytes";
}

const kernel_rules without_blocks = [] {
    kernel_rules rules;
    rules.pack_blocks_1 = rules.pack_blocks_4 = 0;
    rules.unpack_blocks_1 = rules.unpack_blocks_4 = 0;
    return rules;
}();

uint64_t first_seed() {
    const char *text = std::getenv("CUDA_NC_TEST_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

TEST(kernels, move_exactly_the_bytes_of_random_layouts) {
    const char *text = std::getenv("CUDA_NC_TEST_COUNT");
    const uint64_t count = text != nullptr ? std::strtoull(text, nullptr, 10) : 2500;
    std::map<std::string, int> used;
    for (uint64_t seed = first_seed(); seed < first_seed() + count; ++seed) {
        random_case c = case_maker(seed).make();
        std::string fault = run_case(c, seed, &used, seed % 2 == 0 ? usual_rules : without_blocks);
        ASSERT_EQ(fault, "") << "CUDA_NC_TEST_SEED=" << seed << " direction "
                             << static_cast<int>(c.dir) << " offset " << c.packed_offset
                             << " length " << c.length << " of " << c.view.packed_size;
    }
    std::string all;
    for (const auto &one : used) {
        all += one.first + ":" + std::to_string(one.second) + " ";
    }
    RecordProperty("used", all);
    if (count >= 2500) {
        // 5 word sizes x 6 locators, windows and pieces of 6, tiles of 5, units: nearly all of
        // them.
        EXPECT_GE(used.size(), 40u) << all;
    }
}

TEST(kernels, move_the_same_bytes_whatever_the_rules) {
    std::map<std::string, int> used;
    for (uint64_t seed = first_seed(); seed < first_seed() + 2000; ++seed) {
        case_maker maker(seed);
        random_case c = seed % 16 == 0 ? maker.make_long() : maker.make();
        ASSERT_EQ(run_case(c, seed, &used, maker.make_rules()), "")
            << "CUDA_NC_TEST_SEED=" << seed << " direction " << static_cast<int>(c.dir)
            << " offset " << c.packed_offset << " length " << c.length << " of "
            << c.view.packed_size;
    }
    EXPECT_GE(used.size(), 46u);  // nearly all that there are
}

TEST(kernels, long_blocks_of_different_lengths_move_by_units) {
    std::map<std::string, int> used;
    for (uint64_t seed = first_seed(); seed < first_seed() + 150; ++seed) {
        random_case c = case_maker(seed).make_long();
        ASSERT_EQ(run_case(c, seed, &used, without_blocks), "")
            << "CUDA_NC_TEST_SEED=" << seed << " direction " << static_cast<int>(c.dir)
            << " offset " << c.packed_offset << " length " << c.length << " of "
            << c.view.packed_size;
    }
    int units = 0;
    for (const auto &one : used) {
        units += one.first[0] == '0' + static_cast<int>(method::units) ? one.second : 0;
    }
    EXPECT_GE(units, 100);
}

TEST(kernels, short_lists_move_by_blocks) {
    std::map<std::string, int> used;
    for (uint64_t seed = first_seed(); seed < first_seed() + 1200; ++seed) {
        case_maker maker(seed);
        random_case c = seed % 4 == 0 ? maker.make_progression() : maker.make_short_list();
        ASSERT_EQ(run_case(c, seed, &used), "")
            << "CUDA_NC_TEST_SEED=" << seed << " direction " << static_cast<int>(c.dir)
            << " offset " << c.packed_offset << " length " << c.length << " of "
            << c.view.packed_size;
    }
    std::map<char, int> words;
    for (const auto &one : used) {
        if (one.first[0] == '0' + static_cast<int>(method::blocks)) {
            words[one.first.back()] += one.second;
        }
    }
    EXPECT_EQ(words.size(), 5u);  // 1 to 16 bytes
    for (const auto &one : words) {
        EXPECT_GE(one.second, 10) << "words of 2^" << one.first;
    }
}

TEST(kernels, whole_tiles_of_transposes_move_by_pairs) {
    for (uint64_t element : {1, 2, 4, 8}) {
        for (auto dir : {gpu::direction::pack, gpu::direction::unpack}) {
            for (uint64_t first : {0, 258, 261, 130}) {  // elements; 128 are a row
                random_case c;
                auto stride = static_cast<int64_t>(element);
                c.layout = std::make_unique<hand_made_layout>(
                    std::vector<piece>{{0, element}},
                    std::vector<layout_dim>{{128, 170 * stride}, {168, stride}});
                c.view = c.layout->view();
                c.view.align_log2 = static_cast<uint8_t>(__builtin_ctzll(element));
                c.dir = dir;
                c.packed_offset = first * element;
                c.length = c.view.packed_size - c.packed_offset;
                c.packed_skew = static_cast<uint32_t>(c.packed_offset % 16);
                std::map<std::string, int> used;
                EXPECT_EQ(run_case(c, element, &used), "") << element << " from " << first;
                // From row 1 on the laid-out side is not aligned to pairs.
                EXPECT_EQ(watch.widest_write, (first == 130 ? 1 : 2) * element) << first;
            }
        }
    }
}

TEST(kernels, transposes_go_through_tiles) {
    for (uint64_t element : {1, 2, 4, 8, 16}) {
        for (auto dir : {gpu::direction::pack, gpu::direction::unpack}) {
            random_case c;
            auto stride = static_cast<int64_t>(element);
            c.layout = std::make_unique<hand_made_layout>(
                std::vector<piece>{{0, element}},
                std::vector<layout_dim>{{101, 77 * stride}, {75, stride}, {2, 8000 * stride}});
            c.view = c.layout->view();
            c.view.align_log2 = static_cast<uint8_t>(__builtin_ctzll(element));
            c.dir = dir;
            c.packed_offset = 5 * element + (element > 1 ? 1 : 0);
            c.length = c.view.packed_size - c.packed_offset - 3;
            c.packed_skew = c.packed_offset % 16;
            std::map<std::string, int> used;
            EXPECT_EQ(run_case(c, element, &used), "") << element;
            EXPECT_EQ(used.begin()->first[0], '0' + static_cast<int>(method::tiles))
                << used.begin()->first;
        }
    }
}

TEST(kernels, tiles_fit_the_shared_memory_of_a_block) {
    for (uint64_t seed = 1; seed <= 1500; ++seed) {
        random_case c = case_maker(seed).make();
        part first;
        if (c.length == 0) {
            continue;
        }
        cut_part(c.transfer(), 0, &first);
        for (unsigned max_sms : {0u, 3u}) {
            kernel_choice k = choose_kernel(first, c.view.align_log2, kernel_limits{132}, max_sms);
            if (k.how == method::tiles) {
                uint32_t one = with_word(k.word_log2, [](auto width) {
                    return tile_shared_bytes<decltype(width)::value>;
                });
                ASSERT_LE(one * k.per_thread_block, 48u << 10) << "seed " << seed;
            }
        }
    }
}

TEST(kernels, parts_of_huge_layouts_lie_where_the_layout_says) {
    std::mt19937_64 random(first_seed());
    for (int round = 0; round < 20000; ++round) {
        layout_view view;
        view.num_blocks = 1;
        view.kind = shape::strided;
        view.list_size = view.block_length =
            random() % 3 == 0 ? 1 + random() % (uint64_t{1} << 33) : 1 + random() % 100;
        view.num_dims = static_cast<uint8_t>(random() % 5);
        view.first_displacement = static_cast<int64_t>(random() % 1000);
        view.packed_size = view.list_size;
        for (unsigned d = 0; d < view.num_dims; ++d) {
            view.dims[d].count = 2 + random() % (random() % 4 == 0 ? 1 << 20 : 300);
            if (view.packed_size > (uint64_t{1} << 40)) {
                view.dims[d].count = 2;
            }
            view.dims[d].stride =
                static_cast<int64_t>(random() % (uint64_t{1} << 40)) - (1ll << 39);
            view.by_dim[d] = fast_divide(view.dims[d].count);
            view.packed_size *= view.dims[d].count;
        }
        view.by_list = fast_divide(view.list_size);
        view.by_block = view.by_list;
        gpu::transfer work;
        work.layout = view;
        work.base = reinterpret_cast<char *>(uint64_t{1} << 60);
        work.packed = reinterpret_cast<char *>(uint64_t{1} << 50);
        work.packed_offset = random() % view.packed_size;
        work.length = 1 + random() % (view.packed_size - work.packed_offset);
        work.length = std::min<uint64_t>(work.length, uint64_t{5} << 30);
        uint64_t done = 0;
        while (done < work.length) {
            part a;
            uint32_t size = cut_part(work, done, &a);
            ASSERT_GT(size, 0u);
            for (uint32_t p :
                 {a.first, a.first + size - 1, a.first + static_cast<uint32_t>(random() % size)}) {
                uint64_t offset = work.packed_offset + done + (p - a.first);
                cursor c;
                if (a.num_dims == 0) {
                    strided_locator<0>::seek(a, p, &c);
                } else {
                    strided_locator<-1>::seek(a, p, &c);
                }
                ASSERT_EQ(a.base + c.displacement, work.base + view.locate(offset).displacement)
                    << "seed " << first_seed() << " round " << round;
                ASSERT_EQ(a.packed + (p - a.first), work.packed + (offset - work.packed_offset));
            }
            done += size;
        }
    }
}

TEST(kernels, division_is_exact_below_2_to_31) {
    std::mt19937_64 random(first_seed());
    const uint32_t top = (1u << 31) - 1;
    for (int round = 0; round < 200000; ++round) {
        uint32_t divisor = static_cast<uint32_t>(1 + (random() % top >> random() % 31));
        uint32_t n = static_cast<uint32_t>(random() % (uint64_t{1} << 31)) >> random() % 31;
        fast_divide32 by(divisor);
        for (uint32_t value :
             {n, top, n / divisor * divisor, n / divisor * divisor - (n >= divisor)}) {
            ASSERT_EQ(by.quotient(value), value / divisor) << value << " / " << divisor;
        }
    }
}

}  // namespace
}  // namespace cuda_nc::exec::test
