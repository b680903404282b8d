// The index code of pipes on the CPU against a naive byte map: every chunk of a message, in a ring
// that holds all of them.
#include <gtest/gtest.h>

#include <string>

#include "ucs/exec/kernels/random_case.hpp"
#include "ucs/exec/kernels/watched_buffers.hpp"

#include "ucs/exec/kernels/move/short_list.hpp"
#include "ucs/exec/kernels/plan/pipe_plan.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::exec::test {
namespace {

constexpr uint32_t threads = 64;

void move_units(const part &piece, unsigned align_log2) {
    unit_table table;
    const uint32_t unit_log2 = unit_log2_of_piece(piece.length, threads / warp_lanes);
    const bool packing = piece.dir == gpu::direction::pack;
    for (uint32_t thread = 0; thread < threads; thread += warp_lanes) {
        thread_place at{thread, threads, 0, 1};
        with_unit_kind(packing, align_log2, [&](auto pack, auto align, auto width) {
            if constexpr (decltype(width)::value != 0) {
                word_units_warp<decltype(width)::value>(piece, unit_log2, at, &table, {});
            } else {
                units_warp<decltype(pack)::value, decltype(align)::value>(piece, unit_log2, at,
                                                                          &table, {});
            }
        });
    }
}

void move_by_one_block(const part &piece, const kernel_choice &mover) {
    if (mover.how == method::units) {
        return move_units(piece, mover.word_log2);
    }
    if (mover.how == method::blocks) {
        return with_word(mover.word_log2, [&](auto width) {
            for (uint32_t thread = 0; thread < threads; ++thread) {
                move_blocks<decltype(width)::value>(piece, thread, threads);
            }
        });
    }
    if (mover.how == method::windows) {
        return with_window_locator(mover.locator, [&](auto locator) {
            for (uint32_t thread = 0; thread < threads; ++thread) {
                windows_thread<typename decltype(locator)::type>(
                    piece, threads, thread_place{thread, threads, 0, 1});
            }
        });
    }
    auto run = [&](auto locator) {
        using locator_type = typename decltype(locator)::type;
        for (uint32_t thread = 0; thread < threads; ++thread) {
            thread_place at{thread, threads, 0, 1};
            with_word(mover.word_log2, [&](auto width) {
                words_thread<locator_type, decltype(width)::value>(piece, threads, at);
            });
        }
    };
    if (is_strided(mover.locator)) {
        with_strided_locator(mover.locator, run);
    } else {
        with_mover_locator(mover.locator, run);
    }
}

std::string compare(const buffer &target, const std::vector<char> &expected) {
    if (!watch.fault.empty()) {
        return watch.fault;
    }
    for (size_t i = 0; i < target.size; ++i) {
        if (target.data[i] != expected[i]) {
            return "byte " + std::to_string(i) + " of " + std::to_string(target.size);
        }
    }
    return "";
}

// Where packed byte i of the message lies in the ring.
size_t place_in_ring(const gpu::pipe_geometry &g, uint64_t i) {
    uint64_t chunk = i / g.chunk_size;
    uint64_t channel = chunk % g.channels, slot = chunk / g.channels;
    return (channel * g.depth + slot) * g.chunk_size + i % g.chunk_size;
}

uint32_t random_chunk(case_maker &random) {
    static constexpr uint64_t most[] = {8, 8, 400, 400, 400, 2000};
    return 16 * static_cast<uint32_t>(random.between(1, most[random.below(6)]));
}

std::string run_case(const random_case &c, case_maker &random, uint64_t seed) {
    gpu::pipe_work work;
    work.dir = c.dir;
    work.layout = &c.view;
    work.packed_offset = c.packed_offset;
    work.length = c.length;
    gpu::pipe_geometry &g = work.geometry;
    g.chunk_size = random_chunk(random);
    g.channels = static_cast<uint32_t>(random.between(1, 5));
    g.depth = static_cast<uint32_t>(c.length / g.chunk_size / g.channels + 1);

    buffer laid_out(c.span(), c.laid_out_skew, seed);
    buffer ring(g.ring_size(), 0, seed + 1);
    const bool packing = c.dir == gpu::direction::pack;
    buffer &source = packing ? laid_out : ring, &target = packing ? ring : laid_out;
    const std::vector<int64_t> map = c.bytes();
    std::vector<char> expected(target.data, target.data + target.size);
    for (uint64_t i = 0; i < c.length; ++i) {
        auto at = static_cast<size_t>(map[c.packed_offset + i] - c.layout->lower());
        size_t in_ring = place_in_ring(g, i);
        expected[packing ? in_ring : at] = source.data[packing ? at : in_ring];
    }
    work.base = laid_out.data - c.layout->lower();
    work.ring = ring.data;
    // Among others of the same launch, before it and after it.
    pipe_plan plan;
    const auto before = static_cast<uint32_t>(random.between(0, 3));
    for (uint32_t i = 0; i < before + 3; ++i) {
        gpu::pipe_work other = work;
        other.geometry.channels = static_cast<uint32_t>(random.between(1, 5));
        if (!add_pipe(i == before ? work : other, &plan) && i <= before) {
            return "no plan";
        }
    }
    watch_buffers(source, target);
    uint32_t channel = 0, entry = 0;
    for (uint32_t block = 0; block < plan.num_thread_blocks; ++block) {
        uint32_t at = pipe_entry(plan.batch, block);
        channel = block != 0 && at == entry ? channel + 1 : 0;
        entry = at;
        const pipe_arguments &a = plan.batch.entries[entry];
        if (block - plan.batch.first_thread_block[entry] != channel ||
            channel >= a.geometry.channels) {
            return "block " + std::to_string(block) + " is not of its side";
        }
        if (entry != before * a.num_parts) {
            continue;
        }
        if (pipe_chunks(a, channel) != gpu::pipe_channel_chunks(c.length, g, channel)) {
            return "channel " + std::to_string(channel) + " has other chunks";
        }
        for (uint32_t k = 0; k < pipe_chunks(a, channel); ++k) {
            for (uint32_t which = 0; which < a.num_parts; ++which) {
                part piece = plan.batch.entries[entry + which].what;
                if (pipe_piece(a, plan.batch.entries[entry + which], channel, k,
                               pipe_slot(a, channel, k), &piece)) {
                    move_by_one_block(piece, plan.mover);
                }
            }
        }
    }
    return compare(target, expected);
}

// Moves the same bytes as a pull of a short list; false: it is none.
bool run_short_pull(const gpu::pipe_work &work, const pipe_plan &plan, const buffer &source,
                    const buffer &target) {
    short_pull pull;
    if (!make_short_pull(work, plan, &pull)) {
        return false;
    }
    watch_buffers(source, target);
    const pipe_arguments &a = pull.entries[0];
    for (uint32_t channel = 0; channel < a.geometry.channels; ++channel) {
        for (uint32_t k = 0; k < pipe_chunks(a, channel); ++k) {
            const short_piece piece = piece_of_short_pull(pull, channel, k);
            for (uint32_t thread = 0; thread < threads; ++thread) {
                with_word(pull.word_log2, [&](auto width) {
                    move_short_piece<decltype(width)::value, 4>(pull, pull.list, piece, thread,
                                                                threads);
                });
            }
        }
    }
    return true;
}

// A pull of the first bytes of `from` to `to`; where that is null, to another buffer laid out
// alike.
std::string run_pull(const random_case &from, const random_case *to, case_maker &random,
                     uint64_t seed, int *short_lists) {
    const bool alike = to == nullptr;
    const random_case &target_case = alike ? from : *to;
    gpu::pipe_work work;
    work.pulls = true;
    work.dir = gpu::direction::unpack;
    work.length = std::min(from.view.packed_size, target_case.view.packed_size);
    gpu::pipe_geometry &g = work.geometry;
    g.chunk_size = random_chunk(random);
    g.channels = static_cast<uint32_t>(random.between(1, 5));
    g.depth = 1;
    buffer source(from.span(), from.laid_out_skew, seed);
    buffer target(target_case.span(), target_case.packed_skew, seed + 1);
    const std::vector<char> before(target.data, target.data + target.size);
    std::vector<char> expected = before;
    const std::vector<int64_t> there = from.bytes(), here = target_case.bytes();
    for (uint64_t i = 0; i < work.length; ++i) {
        expected[static_cast<size_t>(here[i] - target_case.layout->lower())] =
            source.data[there[i] - from.layout->lower()];
    }
    work.source = alike ? nullptr : &from.view;
    work.on_host = &target_case.view;
    work.source_base = source.data - from.layout->lower();
    work.layout = &target_case.view;
    work.base = target.data - target_case.layout->lower();
    pipe_plan plan;
    if (!add_pipe(work, &plan)) {
        return "no plan";
    }
    const pipe_arguments &a = plan.batch.entries[0];
    if (a.num_parts != (alike ? 1u : 2u) || plan.slot_size != (alike ? 0 : g.chunk_size)) {
        return "other parts than expected";
    }
    buffer slot(g.chunk_size, 0, seed + 2);
    std::vector<uint8_t> target_writes(target.size);
    watch = access_watch();
    for (uint32_t channel = 0; channel < g.channels; ++channel) {
        for (uint32_t k = 0; k < pipe_chunks(a, channel); ++k) {
            for (uint32_t which = 0; which < a.num_parts; ++which) {
                part piece = plan.batch.entries[which].what;
                if (!pipe_piece(a, plan.batch.entries[which], channel, k, slot.data, &piece)) {
                    return "an empty chunk";
                }
                const bool last = which + 1 == a.num_parts;
                std::vector<uint8_t> slot_writes(last ? 0 : slot.size);
                std::vector<uint8_t> &writes = last ? target_writes : slot_writes;
                turn_watch(which == 0 ? source : slot, last ? target : slot, &writes);
                move_by_one_block(piece, plan.mover);
                watch.writes.swap(writes);
                if (!watch.fault.empty()) {
                    return watch.fault;
                }
            }
        }
    }
    const std::string fault = compare(target, expected);
    if (!fault.empty()) {
        return fault;
    }
    std::copy(before.begin(), before.end(), target.data);
    if (!run_short_pull(work, plan, source, target)) {
        return "";
    }
    ++*short_lists;
    return compare(target, expected);
}

TEST(pipe_plan, pulls_bring_random_layouts_to_random_layouts) {
    int alike = 0, different = 0, mixed = 0, short_lists = 0;
    for (uint64_t seed = 1; seed <= 600; ++seed) {
        case_maker random(seed);
        random_case from = random.make(), to = random.make();
        if (seed % 8 == 0) {
            from = random.make_long();
        }
        ASSERT_EQ(run_pull(from, nullptr, random, seed, &short_lists), "")
            << "alike, seed " << seed;
        ASSERT_EQ(run_pull(from, &to, random, seed, &short_lists), "") << "seed " << seed;
        ++alike;
        different += from.view.num_blocks == 1 && to.view.num_blocks == 1 ? 1 : 0;
        mixed += (from.view.num_blocks == 1) != (to.view.num_blocks == 1) ? 1 : 0;
    }
    EXPECT_GT(alike, 500);
    EXPECT_GT(different, 100);
    EXPECT_GT(mixed, 100);
}

TEST(pipe_plan, pulls_of_short_lists_bring_their_own_tables) {
    int short_lists = 0;
    for (uint64_t seed = 1; seed <= 400; ++seed) {
        case_maker random(seed);
        ASSERT_EQ(run_pull(random.make_long(), nullptr, random, seed, &short_lists), "")
            << "seed " << seed;
    }
    EXPECT_GT(short_lists, 10);
}

TEST(pipe_plan, chunks_of_random_layouts_make_the_message) {
    for (uint64_t seed = 1; seed <= 1000; ++seed) {
        case_maker random(seed);
        random_case c = random.make();
        if (c.dir == gpu::direction::copy || c.length == 0) {
            continue;
        }
        ASSERT_EQ(run_case(c, random, seed), "") << "seed " << seed;
    }
}

TEST(pipe_plan, short_blocks_of_different_lengths_are_moved_by_lanes_of_their_own) {
    int short_lists = 0, by_blocks = 0;
    for (uint64_t seed = 1; seed <= 600; ++seed) {
        case_maker random(seed);
        random_case c = random.make_short_list(true);
        const random_case other =
            seed % 3 == 0 ? random.make_long() : random.make_short_list(seed % 3 == 1);
        part probe;
        cut_part(c.transfer(), 0, &probe);
        const kernel_choice mover = choose_mover(probe, c.view.align_log2, 8 << 10);
        by_blocks += mover.how == method::blocks ? 1 : 0;
        if (c.dir != gpu::direction::copy && c.length != 0) {
            ASSERT_EQ(run_case(c, random, seed), "") << "seed " << seed;
        }
        ASSERT_EQ(run_pull(c, nullptr, random, seed, &short_lists), "") << "seed " << seed;
        ASSERT_EQ(run_pull(c, &other, random, seed, &short_lists), "") << "seed " << seed;
        ASSERT_EQ(run_pull(other, &c, random, seed, &short_lists), "") << "seed " << seed;
    }
    EXPECT_GT(by_blocks, 40);
}

// Tables are there too, and serve where addresses are aligned to less than 4 bytes, or where the
// other side has another list.
TEST(pipe_plan, progressions_are_found_without_their_tables) {
    int short_lists = 0, by_words = 0;
    for (uint64_t seed = 1; seed <= 400; ++seed) {
        case_maker random(seed);
        random_case c = random.make_progression();
        gpu::transfer all;
        all.layout = c.view;
        all.base = reinterpret_cast<char *>(uintptr_t{1} << 20);
        all.length = c.view.packed_size;
        part probe;
        cut_part(all, 0, &probe);
        by_words += choose_mover(probe, c.view.align_log2, 8 << 10).how == method::words ? 1 : 0;
        EXPECT_EQ(choose_mover(probe, c.view.align_log2, 32 << 10).locator, locator_kind::varying);
        if (c.dir != gpu::direction::copy && c.length != 0) {
            ASSERT_EQ(run_case(c, random, seed), "") << "seed " << seed;
        }
        ASSERT_EQ(run_pull(c, nullptr, random, seed, &short_lists), "") << "seed " << seed;
        const random_case other = random.make_long();
        ASSERT_EQ(run_pull(c, &other, random, seed, &short_lists), "") << "seed " << seed;
        ASSERT_EQ(run_pull(other, &c, random, seed, &short_lists), "") << "seed " << seed;
    }
    EXPECT_GT(by_words, 130);
}

// Every block's first and last byte, of progressions up to what the layout says is one.
TEST(pipe_plan, every_block_of_long_progressions_is_found) {
    struct shape_of_blocks {
        uint64_t first, last;
        int64_t step;
    };
    static constexpr shape_of_blocks all[] = {
        {8, 8 * 30000, 8},
        {8 * 30000, 8, -8},
        {4, 4 + 100000 * 4, 4},
        {4 << 20, 4, -4},
        {16, 1 << 29, 1 << 24},
        {1 << 29, 16 << 10, -(1 << 14)},
        {1 << 22, (1 << 22) + 1000, 1},
        {1 << 22, (1 << 22) - 1000, -1},
    };
    for (const shape_of_blocks &one : all) {
        layout_builder builder;
        int64_t at = 1000;
        const int64_t stride = 600 << 20;
        uint64_t blocks = 0;
        for (uint64_t length = one.first; one.step > 0 ? length <= one.last : length >= one.last;
             length += static_cast<uint64_t>(one.step), at += stride, ++blocks) {
            builder.append(at, length);
        }
        const layout_ref made = builder.finish();
        ASSERT_NE(made, nullptr);
        ASSERT_EQ(made->view().progression.first_length, one.first);
        uint64_t packed = 0, length = one.first;
        for (uint64_t b = 0; b < blocks; ++b) {
            for (uint64_t in_block : {uint64_t{0}, length / 2, length - 1}) {
                gpu::transfer work;
                work.layout = made->view();
                work.packed_offset = packed + in_block;
                work.length = 1;
                part p;
                cut_part(work, 0, &p);
                cursor c;
                progression_locator::seek(p, p.first, &c);
                ASSERT_EQ(c.displacement,
                          1000 + static_cast<int64_t>(b) * stride + static_cast<int64_t>(in_block))
                    << one.first << " to " << one.last << ", block " << b;
                ASSERT_EQ(c.remaining, length - in_block);
                ASSERT_EQ(c.at_start, in_block == 0);
            }
            packed += length;
            length += static_cast<uint64_t>(one.step);
        }
    }
}

// Both parts of a message that crosses the range of 32-bit offsets say where every byte lies.
TEST(pipe_plan, long_messages_are_cut_in_two_parts_at_most) {
    std::mt19937_64 random(20261121);
    for (int round = 0; round < 20000; ++round) {
        layout_view view;
        view.num_blocks = 1;
        view.kind = shape::strided;
        view.list_size = view.block_length = 1 + random() % 100000;
        view.packed_size = view.list_size;
        view.num_dims = static_cast<uint8_t>(1 + random() % 5);
        for (unsigned d = 0; d < view.num_dims; ++d) {
            view.dims[d].count = 2 + random() % (random() % 3 == 0 ? 1 << 20 : 200);
            if (view.packed_size > (uint64_t{1} << 40)) {
                view.dims[d].count = 2;
            }
            view.dims[d].stride = static_cast<int64_t>(random() % (uint64_t{1} << 40));
            view.by_dim[d] = fast_divide(view.dims[d].count);
            view.packed_size *= view.dims[d].count;
        }
        view.by_list = view.by_block = fast_divide(view.list_size);
        gpu::pipe_work work;
        work.layout = &view;
        work.geometry = {4, 65536, 2};
        work.packed_offset = random() % view.packed_size;
        work.length = std::min(view.packed_size - work.packed_offset, gpu::max_pipe_length);
        pipe_plan plan;
        ASSERT_TRUE(add_pipe(work, &plan)) << "round " << round;
        const pipe_arguments *entries = plan.batch.entries;
        const uint32_t num_parts = entries[0].num_parts;
        for (int probe = 0; probe < 4; ++probe) {
            uint64_t offset = random() % work.length;
            uint32_t which = num_parts == 2 && offset >= entries[1].begin ? 1 : 0;
            const part &one = entries[which].what;
            cursor at;
            strided_locator<-1>::seek(
                one, one.first + static_cast<uint32_t>(offset - entries[which].begin), &at);
            int64_t base = reinterpret_cast<intptr_t>(one.base);
            ASSERT_EQ(base + at.displacement, view.locate(work.packed_offset + offset).displacement)
                << "round " << round;
        }
    }
}

// As many as its parameters hold, of the first one's kernel.
TEST(pipe_plan, a_launch_takes_the_sides_of_one_kernel_that_fit) {
    gpu::pipe_work work;
    layout_view layout;
    work.layout = &layout;
    layout.num_blocks = layout.num_dims = 1;
    layout.kind = shape::strided;
    layout.list_size = layout.block_length = 16;
    layout.align_log2 = 4;
    layout.packed_size = work.length = 16000;
    layout.dims[0] = {1000, 32};
    layout.by_dim[0] = fast_divide(1000);
    layout.by_list = layout.by_block = fast_divide(16);
    work.geometry = {3, 64, 2};
    gpu::pipe_work other = work;
    other.base += 1;  // not words of 16 bytes
    pipe_plan plan;
    ASSERT_TRUE(add_pipe(work, &plan));
    EXPECT_FALSE(add_pipe(other, &plan));
    EXPECT_EQ(plan.batch.num_entries, 1u);
    for (uint32_t i = 1; i < max_pipe_entries; ++i) {
        work.dir = gpu::direction::unpack;  // both directions by one kernel
        ASSERT_TRUE(add_pipe(work, &plan));
        EXPECT_EQ(plan.batch.first_thread_block[i], 3 * i);
    }
    EXPECT_FALSE(add_pipe(work, &plan));
    EXPECT_EQ(plan.num_thread_blocks, 3 * max_pipe_entries);
}

}  // namespace
}  // namespace cuda_nc::exec::test
