// Work lists on the GPU that the process has, simulated or real.
#include "ucs/worklist/worklist.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <thread>

#include "ucs/base/settings.hpp"

namespace {

// Of this thread: allocations until one fails; 0: none does.
thread_local unsigned allocations_left = 0;

void *allocate(size_t size) noexcept {
    const bool fails = allocations_left != 0 && --allocations_left == 0;
    return fails ? nullptr : std::malloc(std::max<size_t>(size, 1));
}

}  // namespace

// Not inlined: the compiler would take the two for a mismatch.
__attribute__((noinline)) void *operator new(size_t size) {
    if (void *made = allocate(size)) {
        return made;
    }
    throw std::bad_alloc();
}
__attribute__((noinline)) void *operator new(size_t size, const std::nothrow_t &) noexcept {
    return allocate(size);
}
__attribute__((noinline)) void operator delete(void *memory) noexcept {
    std::free(memory);
}
__attribute__((noinline)) void operator delete(void *memory, size_t) noexcept {
    std::free(memory);
}

namespace cuda_nc::worklist {
namespace {

struct piece {
    int64_t displacement;
    uint64_t length;
};

// Blocks that do not overlap, in random order.
std::vector<piece> random_pieces(uint64_t seed, size_t count, uint64_t longest, bool uniform) {
    std::mt19937_64 random(seed);
    std::vector<piece> pieces;
    int64_t at = 0;
    for (size_t b = 0; b < count; ++b) {
        uint64_t length = uniform ? longest : 1 + random() % longest;
        pieces.push_back({at, length});
        at += static_cast<int64_t>(length + 1 + random() % 7);
    }
    std::shuffle(pieces.begin(), pieces.end(), random);
    return pieces;
}

layout_ref make_layout(const std::vector<piece> &pieces) {
    layout_builder builder;
    for (const piece &one : pieces) {
        builder.append(one.displacement, one.length);
    }
    return builder.finish();
}

class worklist_test : public testing::Test {
  protected:
    void SetUp() override {
        gpu::platform &all = gpu::platform::instance();
        if (all.num_devices() == 0) {
            GTEST_SKIP() << "no GPU, simulated or real";
        }
        device_ = all.get_device(0);
        for (auto *one : {&first_, &second_}) {
            ASSERT_EQ(device_->create_stream(one), UCS_OK);
        }
        trim(*device_);
    }

    std::unique_ptr<gpu::memory> allocate(size_t size) {
        std::unique_ptr<gpu::memory> made;
        EXPECT_EQ(device_->allocate(size, &made), UCS_OK);
        return made;
    }
    void wait(gpu::stream &on) {
        std::unique_ptr<gpu::event> mark;
        ASSERT_EQ(device_->create_event(&mark), UCS_OK);
        ASSERT_EQ(on.record(*mark), UCS_OK);
        ASSERT_EQ(mark->synchronize(), UCS_OK);
    }

    // Packs all of `pieces` through `list`, in fragments of random sizes on two streams, and
    // compares with a loop over the pieces.
    void pack_and_compare(work_list &list, const std::vector<piece> &pieces, uint64_t seed) {
        std::mt19937_64 random(seed);
        size_t span = 0;
        std::string expected;
        for (const piece &one : pieces) {
            span = std::max(span, static_cast<size_t>(one.displacement) + one.length);
        }
        std::string laid_out(span, 0);
        for (char &byte : laid_out) {
            byte = static_cast<char>(random());
        }
        for (const piece &one : pieces) {
            expected.append(laid_out, static_cast<size_t>(one.displacement), one.length);
        }
        auto source = allocate(span), packed = allocate(expected.size());
        ASSERT_EQ(first_->copy(source->address(), laid_out.data(), span), UCS_OK);
        wait(*first_);
        for (uint64_t offset = 0; offset < expected.size();) {
            gpu::stream &on = random() % 2 == 0 ? *first_ : *second_;
            gpu::transfer work;
            work.base = source->address();
            work.packed = packed->address() + offset;
            work.packed_offset = offset;
            work.length = std::min<uint64_t>(expected.size() - offset,
                                             1 + random() % (expected.size() / 4 + 1));
            ASSERT_EQ(list.prepare(on, offset + work.length), UCS_OK);
            work.layout = list.view();
            ASSERT_EQ(on.launch(work), UCS_OK);
            offset += work.length;
        }
        wait(*first_);
        wait(*second_);
        std::string found(expected.size(), 0);
        ASSERT_EQ(first_->copy(found.data(), packed->address(), found.size()), UCS_OK);
        wait(*first_);
        EXPECT_TRUE(found == expected) << "seed " << seed;
    }

    gpu::device *device_ = nullptr;
    std::unique_ptr<gpu::stream> first_, second_;
};

TEST_F(worklist_test, serves_any_fragment_on_any_stream_while_it_is_built) {
    struct {
        size_t count;
        uint64_t longest;
        bool uniform;
    } const shapes[] = {{2, 9, false},      {1023, 5, false}, {1024, 8, true},    {1025, 64, false},
                        {50000, 16, false}, {70000, 8, true}, {3000, 3000, false}};
    uint64_t seed = 1;
    for (const auto &shape : shapes) {
        std::vector<piece> pieces = random_pieces(seed, shape.count, shape.longest, shape.uniform);
        layout_ref layout = make_layout(pieces);
        work_list_ref list;
        ASSERT_EQ(acquire(*device_, layout, &list), UCS_OK);
        pack_and_compare(*list, pieces, seed);
        pack_and_compare(*list, pieces, seed + 100);  // complete by now
        ++seed;
    }
}

TEST_F(worklist_test, repeats_of_a_list_need_all_of_it) {
    std::vector<piece> pieces = random_pieces(7, 3000, 9, false);
    int64_t extent = 3000 * 16;
    layout_ref layout = make_layout(pieces)->repeat(5, extent);
    ASSERT_NE(layout, nullptr);
    std::vector<piece> all;
    for (int64_t i = 0; i < 5; ++i) {
        for (const piece &one : pieces) {
            all.push_back({one.displacement + i * extent, one.length});
        }
    }
    work_list_ref list;
    ASSERT_EQ(acquire(*device_, layout, &list), UCS_OK);
    pack_and_compare(*list, all, 7);
}

TEST_F(worklist_test, first_fragment_moves_a_part_only) {
    std::vector<piece> pieces = random_pieces(8, 100000, 8, true);
    layout_ref layout = make_layout(pieces);
    uint64_t before = statistics(*device_).bytes_moved;
    work_list_ref list;
    ASSERT_EQ(acquire(*device_, layout, &list), UCS_OK);
    EXPECT_EQ(statistics(*device_).bytes_moved, before);
    ASSERT_EQ(list->prepare(*first_, 1), UCS_OK);
    EXPECT_LT(statistics(*device_).bytes_moved - before, 100000);
    ASSERT_EQ(list->prepare(*first_, layout->packed_size()), UCS_OK);
    uint64_t all = statistics(*device_).bytes_moved - before;
    EXPECT_GE(all, 400000u);
    EXPECT_LE(all, 410000u);  // 4 bytes a block, and a little for each 1,024
    ASSERT_EQ(list->prepare(*second_, layout->packed_size()), UCS_OK);
    EXPECT_EQ(statistics(*device_).bytes_moved - before, all);
    wait(*first_);
    wait(*second_);
}

// Passes everything on; counts what came before the first launch.
class watched_stream final : public gpu::stream {
  public:
    explicit watched_stream(gpu::stream &behind) : behind_(behind) {}
    ucs_status_t launch(const gpu::transfer &work) noexcept override {
        if (launches++ == 0) {
            copied_first = copied;
            launched_first = work.length;
        }
        return behind_.launch(work);
    }
    ucs_status_t launch(const gpu::pipe_work *sides, size_t number,
                        size_t *launched_p) noexcept override {
        return behind_.launch(sides, number, launched_p);
    }
    ucs_status_t launch(const gpu::pair_list &list) noexcept override {
        return behind_.launch(list);
    }
    ucs_status_t copy(void *destination, const void *source, size_t length) noexcept override {
        copied += length;
        return behind_.copy(destination, source, length);
    }
    ucs_status_t record(gpu::event &mark) noexcept override { return behind_.record(mark); }
    ucs_status_t wait(gpu::event &mark) noexcept override { return behind_.wait(mark); }

    unsigned launches = 0;
    size_t copied = 0, copied_first = 0, launched_first = 0;

  private:
    gpu::stream &behind_;
};

TEST_F(worklist_test, the_first_kernel_of_a_first_use_waits_for_a_part_only) {
    for (bool uniform : {true, false}) {
        auto pieces = random_pieces(14 + uniform, 300000, 9, uniform);
        work_list_ref list;
        ASSERT_EQ(acquire(*device_, make_layout(pieces), &list), UCS_OK);
        size_t span = 0;
        std::string expected;
        for (const piece &one : pieces) {
            span = std::max(span, static_cast<size_t>(one.displacement) + one.length);
        }
        std::string laid_out(span, 0);
        for (size_t i = 0; i < span; ++i) {
            laid_out[i] = static_cast<char>(i * 2654435761u >> 11);
        }
        for (const piece &one : pieces) {
            expected.append(laid_out, static_cast<size_t>(one.displacement), one.length);
        }
        auto source = allocate(span), packed = allocate(expected.size());
        ASSERT_EQ(first_->copy(source->address(), laid_out.data(), span), UCS_OK);
        wait(*first_);
        gpu::transfer work;
        work.base = source->address();
        work.packed = packed->address();
        work.length = expected.size();
        watched_stream cold(*first_), warm(*first_);
        ASSERT_EQ(launch(*list, cold, work), UCS_OK);
        wait(*first_);
        std::string found(expected.size(), 0);
        ASSERT_EQ(first_->copy(found.data(), packed->address(), found.size()), UCS_OK);
        wait(*first_);
        EXPECT_TRUE(found == expected);
        EXPECT_LT(cold.copied_first, cold.copied / 8);
        EXPECT_LT(cold.launched_first, expected.size() / 8);
        EXPECT_LE(cold.launches, 8u);
        // Once the list is there, one launch; the same from the middle on.
        ASSERT_EQ(launch(*list, warm, work), UCS_OK);
        work.packed_offset = expected.size() / 3;
        work.packed += work.packed_offset;
        work.length -= work.packed_offset;
        ASSERT_EQ(launch(*list, warm, work), UCS_OK);
        EXPECT_EQ(warm.launches, 2u);
        EXPECT_EQ(warm.copied, 0u);
        wait(*first_);
        // A first use that begins far in the list.
        list.reset();
        trim(*device_);
        ASSERT_EQ(acquire(*device_, make_layout(pieces), &list), UCS_OK);
        std::string none(expected.size(), 0);
        ASSERT_EQ(first_->copy(packed->address(), none.data(), none.size()), UCS_OK);
        ASSERT_EQ(launch(*list, warm, work), UCS_OK);
        wait(*first_);
        ASSERT_EQ(first_->copy(found.data(), packed->address(), found.size()), UCS_OK);
        wait(*first_);
        EXPECT_TRUE(found.compare(work.packed_offset, std::string::npos, expected,
                                  work.packed_offset) == 0);
        EXPECT_TRUE(found.compare(0, work.packed_offset, none, 0, work.packed_offset) == 0);
    }
}

TEST_F(worklist_test, equal_layouts_share_a_list) {
    std::vector<piece> pieces = random_pieces(9, 500, 20, false);
    layout_ref one = make_layout(pieces), two = make_layout(pieces);
    pieces[13].displacement += 100000;
    layout_ref other = make_layout(pieces);
    cache_statistics before = statistics(*device_);
    work_list_ref a, b, c;
    ASSERT_EQ(acquire(*device_, one, &a), UCS_OK);
    ASSERT_EQ(acquire(*device_, two, &b), UCS_OK);
    ASSERT_EQ(acquire(*device_, other, &c), UCS_OK);
    EXPECT_EQ(a, b);
    EXPECT_NE(a, c);
    cache_statistics after = statistics(*device_);
    EXPECT_EQ(after.hits - before.hits, 1u);
    EXPECT_EQ(after.misses - before.misses, 2u);
    EXPECT_EQ(after.bytes - before.bytes, a->device_bytes() + c->device_bytes());
}

TEST_F(worklist_test, layouts_without_tables_cost_nothing) {
    layout_builder builder;
    for (int64_t i = 0; i < 100; ++i) {
        builder.append(i * 32, 8);
    }
    layout_ref layout = builder.finish();
    cache_statistics before = statistics(*device_);
    work_list_ref list;
    ASSERT_EQ(acquire(*device_, layout, &list), UCS_OK);
    EXPECT_EQ(list->device_bytes(), 0u);
    EXPECT_EQ(list->prepare(*first_, layout->packed_size()), UCS_OK);
    EXPECT_EQ(statistics(*device_).misses, before.misses);
    EXPECT_EQ(statistics(*device_).bytes, before.bytes);
}

// Sets a variable of the environment, until it is destroyed.
class scoped_setting {
  public:
    scoped_setting(const char *name, const char *value) : name_(name) {
        const char *old = std::getenv(name);
        had_ = old != nullptr;
        kept_ = had_ ? old : "";
        setenv(name, value, 1);
        reload_config_for_test();
    }
    ~scoped_setting() {
        if (had_) {
            setenv(name_, kept_.c_str(), 1);
        } else {
            unsetenv(name_);
        }
        reload_config_for_test();
    }

  private:
    const char *name_;
    bool had_;
    std::string kept_;
};

TEST_F(worklist_test, the_cache_is_bounded_and_lists_in_use_outlive_eviction) {
    scoped_setting size("UCX_CUDA_NC_WORKLIST_CACHE_SIZE", "100K");
    cache_statistics before = statistics(*device_);
    std::vector<piece> first_pieces = random_pieces(20, 4000, 8, true);
    work_list_ref first, list;
    ASSERT_EQ(acquire(*device_, make_layout(first_pieces), &first), UCS_OK);
    for (uint64_t seed = 21; seed < 40; ++seed) {
        ASSERT_EQ(acquire(*device_, make_layout(random_pieces(seed, 4000, 8, true)), &list),
                  UCS_OK);
        EXPECT_LE(statistics(*device_).bytes, 100u << 10);
    }
    EXPECT_GT(statistics(*device_).evictions, before.evictions + 10);
    pack_and_compare(*first, first_pieces, 20);
}

TEST_F(worklist_test, the_number_of_lists_is_bounded_and_the_least_recently_used_leaves) {
    scoped_setting lists("UCX_CUDA_NC_WORKLIST_CACHE_LISTS", "10");
    auto use = [&](uint64_t seed) {
        layout_ref what = make_layout(random_pieces(seed, 40, 8, false));
        work_list_ref list;
        ASSERT_EQ(acquire(*device_, what, &list), UCS_OK);
        ASSERT_EQ(list->prepare(*first_, what->packed_size()), UCS_OK);
        wait(*first_);
    };
    for (uint64_t seed = 81; seed < 181; ++seed) {
        use(80);
        use(seed);
        EXPECT_LE(statistics(*device_).lists, 10u);
    }
    const cache_statistics before = statistics(*device_);
    EXPECT_EQ(before.lists, 10u);
    for (const auto &[seed, hits] : {std::pair{180, 1u}, std::pair{80, 2u}, std::pair{100, 2u}}) {
        use(static_cast<uint64_t>(seed));
        EXPECT_EQ(statistics(*device_).hits, before.hits + hits) << seed;
    }
}

// A list that was used as a whole needs its layout no longer: types that are used once and freed
// leave no tables in host memory.
TEST_F(worklist_test, a_complete_list_gives_its_layout_back) {
    std::vector<std::weak_ptr<const layout>> layouts;
    constexpr int used_once = 200;
    for (int i = 0; i < used_once; ++i) {
        layout_ref what = make_layout(random_pieces(2000 + i, 40, 8, i % 2 == 0));
        layouts.push_back(what);
        work_list_ref list;
        ASSERT_EQ(acquire(*device_, what, &list), UCS_OK);
        ASSERT_EQ(list->prepare(*first_, what->packed_size()), UCS_OK);
        wait(*first_);
    }
    EXPECT_GE(statistics(*device_).lists, used_once);
    const auto kept = std::count_if(layouts.begin(), layouts.end(),
                                    [](const auto &one) { return !one.expired(); });
    EXPECT_LE(kept, 4);
    // The lists are found by equal layouts, and right.
    for (int i = 0; i < used_once; i += 20) {
        const uint64_t hits = statistics(*device_).hits;
        std::vector<piece> pieces = random_pieces(2000 + i, 40, 8, i % 2 == 0);
        work_list_ref list;
        ASSERT_EQ(acquire(*device_, make_layout(pieces), &list), UCS_OK);
        EXPECT_EQ(statistics(*device_).hits, hits + 1);
        pack_and_compare(*list, pieces, 2000 + i);
    }
}

TEST_F(worklist_test, a_list_that_nobody_will_complete_leaves) {
    std::vector<std::weak_ptr<const layout>> layouts;
    std::vector<layout_ref> alive;
    work_list_ref list;
    for (int i = 0; i < 30; ++i) {
        layout_ref what = make_layout(random_pieces(3000 + i, 50000, 8, true));
        if (i < 5) {
            alive.push_back(what);
        }
        layouts.push_back(what);
        ASSERT_EQ(acquire(*device_, what, &list), UCS_OK);
        ASSERT_EQ(list->prepare(*first_, 1), UCS_OK);
        list.reset();
        wait(*first_);
    }
    for (int i = 0; i < 20; ++i) {
        layout_ref what = make_layout(random_pieces(4000 + i, 40, 8, true));
        ASSERT_EQ(acquire(*device_, what, &list), UCS_OK);
        ASSERT_EQ(list->prepare(*first_, what->packed_size()), UCS_OK);
        wait(*first_);
    }
    for (size_t i = 0; i < layouts.size(); ++i) {
        EXPECT_EQ(layouts[i].expired(), i >= 5) << i;
    }
    EXPECT_EQ(statistics(*device_).lists, 5u + 20u);
}

TEST_F(worklist_test, idle_lists_make_room_where_gpu_memory_is_short) {
    if (std::strcmp(gpu::platform::instance().name(), "sim") != 0) {
        GTEST_SKIP() << "fills the device's memory: simulated GPU only";
    }
    std::vector<piece> pieces = random_pieces(51, 100000, 8, true);
    layout_ref idle = make_layout(random_pieces(50, 100000, 8, true)), wanted = make_layout(pieces);
    work_list_ref list;
    ASSERT_EQ(acquire(*device_, idle, &list), UCS_OK);
    list.reset();
    std::vector<std::unique_ptr<gpu::memory>> rest;
    for (size_t size = size_t{64} << 20; size >= size_t{64} << 10;) {
        std::unique_ptr<gpu::memory> one;
        if (device_->allocate(size, &one) == UCS_OK) {
            rest.push_back(std::move(one));
        } else {
            size /= 2;
        }
    }
    ASSERT_EQ(acquire(*device_, wanted, &list), UCS_OK);
    work_list_ref second;
    EXPECT_EQ(acquire(*device_, idle, &second), UCS_ERR_NO_MEMORY);  // `list` is in use
    rest.clear();
    pack_and_compare(*list, pieces, 51);
}

// The first kernel of the process fails, and with it its stream, which has uploads behind it.
bool is_made_again() {
    gpu::device &device = *gpu::platform::instance().get_device(0);
    const layout_ref what = make_layout(random_pieces(70, 200000, 40, false));
    std::unique_ptr<gpu::memory> from, to;
    EXPECT_EQ(device.allocate(what->upper_bound(), &from), UCS_OK);
    EXPECT_EQ(device.allocate(what->packed_size(), &to), UCS_OK);
    gpu::transfer all;
    all.base = from->address();
    all.packed = to->address();
    all.length = what->packed_size();
    ucs_status_t ended[2];
    for (ucs_status_t &one : ended) {
        std::unique_ptr<gpu::stream> stream;
        std::unique_ptr<gpu::event> mark;
        work_list_ref list;
        EXPECT_EQ(device.create_stream(&stream), UCS_OK);
        EXPECT_EQ(device.create_event(&mark), UCS_OK);
        EXPECT_EQ(acquire(device, what, &list), UCS_OK);
        one = launch(*list, *stream, all);
        EXPECT_EQ(stream->record(*mark), UCS_OK);
        ucs_status_t seen = mark->synchronize();
        one = one == UCS_OK ? seen : one;
        // Whoever comes next finds out by the upload that has failed.
        std::unique_ptr<gpu::stream> other;
        EXPECT_EQ(device.create_stream(&other), UCS_OK);
        list->prepare(*other, all.length);
    }
    return ended[0] != UCS_OK && ended[1] == UCS_OK;
}

TEST(work_list_faults, a_list_whose_upload_failed_is_made_again) {
    const char *chosen = std::getenv("UCX_CUDA_NC_GPU");
    if (chosen == nullptr || std::strcmp(chosen, "sim") != 0) {
        GTEST_SKIP() << "injects faults: simulated GPU only";
    }
    setenv("UCX_CUDA_NC_SIM_FAULTS", "kernel:1", 1);
    testing::FLAGS_gtest_death_test_style = "threadsafe";  // a process that has no GPU yet
    EXPECT_EXIT(std::exit(is_made_again() ? 0 : 1), testing::ExitedWithCode(0), "");
    unsetenv("UCX_CUDA_NC_SIM_FAULTS");
}

TEST_F(worklist_test, many_threads_prepare_one_list) {
    std::vector<piece> pieces = random_pieces(60, 60000, 12, false);
    layout_ref layout = make_layout(pieces);
    std::vector<std::thread> threads;
    std::vector<std::string> packed(4);
    std::string laid_out(60000 * 20, 0), expected;
    std::mt19937_64 random(60);
    for (char &byte : laid_out) {
        byte = static_cast<char>(random());
    }
    for (const piece &one : pieces) {
        expected.append(laid_out, static_cast<size_t>(one.displacement), one.length);
    }
    auto source = allocate(laid_out.size());
    ASSERT_EQ(first_->copy(source->address(), laid_out.data(), laid_out.size()), UCS_OK);
    wait(*first_);
    for (size_t t = 0; t < packed.size(); ++t) {
        threads.emplace_back([&, t] {
            std::unique_ptr<gpu::stream> on;
            std::unique_ptr<gpu::event> mark;
            std::unique_ptr<gpu::memory> target;
            work_list_ref list;
            uint64_t total = layout->packed_size(), step = total / (t + 3) + 1;
            packed[t].resize(total);
            ASSERT_EQ(device_->create_stream(&on), UCS_OK);
            ASSERT_EQ(device_->create_event(&mark), UCS_OK);
            ASSERT_EQ(device_->allocate(total, &target), UCS_OK);
            ASSERT_EQ(acquire(*device_, layout, &list), UCS_OK);
            for (uint64_t offset = 0; offset < total; offset += step) {
                gpu::transfer work;
                work.layout = list->view();
                work.base = source->address();
                work.packed = target->address() + offset;
                work.packed_offset = offset;
                work.length = std::min(step, total - offset);
                ASSERT_EQ(list->prepare(*on, offset + work.length), UCS_OK);
                ASSERT_EQ(on->launch(work), UCS_OK);
            }
            ASSERT_EQ(on->copy(packed[t].data(), target->address(), total), UCS_OK);
            ASSERT_EQ(on->record(*mark), UCS_OK);
            ASSERT_EQ(mark->synchronize(), UCS_OK);
        });
    }
    for (std::thread &one : threads) {
        one.join();
    }
    for (const std::string &one : packed) {
        EXPECT_TRUE(one == expected);
    }
}

TEST_F(worklist_test, the_accounts_stay_right_where_memory_is_short) {
    for (unsigned failing = 1; failing < 60; ++failing) {
        layout_ref what = make_layout(random_pieces(1000 + failing, 300 + failing, 9, false));
        work_list_ref list;
        allocations_left = failing;
        ucs_status_t status = acquire(*device_, what, &list);
        allocations_left = 0;
        EXPECT_EQ(status == UCS_OK, list != nullptr);
        const uint64_t most = config().worklist_cache_size;
        EXPECT_LE(statistics(*device_).bytes, most) << "allocation " << failing << " failed";
        list.reset();
        trim(*device_);
        ASSERT_EQ(statistics(*device_).bytes, 0u) << "allocation " << failing << " failed";
    }
}

}  // namespace
}  // namespace cuda_nc::worklist
