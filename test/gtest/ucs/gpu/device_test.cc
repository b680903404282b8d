// Memory, streams and events, on every platform.
#include <thread>

#include "ucs/gpu/gpu_fixture.hpp"

namespace cuda_nc::gpu::test {
namespace {

class gpu_device : public gpu_test {};
INSTANTIATE_TEST_SUITE_P(all, gpu_device, testing::ValuesIn(platform_names()), name_of_platform());

TEST_P(gpu_device, query_tells_kinds_of_memory) {
    std::unique_ptr<memory> on_device = allocate(1000), pinned = allocate_pinned(1000);
    static char global;
    char local;
    std::vector<char> heap(1000);
    for (size_t offset : {0, 1, 999}) {
        memory_info info = platform_->query(on_device->address() + offset);
        EXPECT_EQ(info.kind, memory_kind::device);
        EXPECT_EQ(info.device, 0);
        EXPECT_EQ(platform_->device_of(on_device->address() + offset), 0);
        EXPECT_EQ(platform_->device_of(pinned->address() + offset), -1);
        EXPECT_EQ(platform_->device_of(heap.data() + offset), -1);
        EXPECT_EQ(platform_->query(pinned->address() + offset).kind, memory_kind::pinned);
        EXPECT_EQ(platform_->query(heap.data() + offset).kind, memory_kind::host);
    }
    EXPECT_EQ(platform_->query(&global).kind, memory_kind::host);
    EXPECT_EQ(platform_->query(&local).kind, memory_kind::host);
    EXPECT_EQ(platform_->query(nullptr).kind, memory_kind::host);
    EXPECT_EQ(platform_->query(reinterpret_cast<void *>(1)).kind, memory_kind::host);
    EXPECT_EQ(platform_->query(reinterpret_cast<void *>(UINTPTR_MAX)).kind, memory_kind::host);
    std::thread([&] {
        EXPECT_EQ(platform_->query(on_device->address()).kind, memory_kind::device);
        EXPECT_EQ(platform_->query(pinned->address()).kind, memory_kind::pinned);
    }).join();
    const void *was_pinned = pinned->address();
    pinned.reset();
    EXPECT_EQ(platform_->query(was_pinned).kind, memory_kind::host);
}

TEST_P(gpu_device, properties_describe_the_device) {
    const device_properties &about = device_->properties();
    EXPECT_FALSE(about.name.empty());
    EXPECT_EQ(about.ordinal, 0);
    EXPECT_GT(about.num_sms, 0u);
    EXPECT_GT(about.memory_size, size_t(1) << 20);
    EXPECT_EQ(about.bus_id.size(), std::string("0000:1b:00.0").size()) << about.bus_id;
    EXPECT_TRUE(device_->can_access_peer(0));
    EXPECT_FALSE(device_->can_access_peer(-1));
    EXPECT_FALSE(device_->can_access_peer(platform_->num_devices()));
    EXPECT_EQ(platform_->get_device(-1), nullptr);
    EXPECT_EQ(platform_->get_device(platform_->num_devices()), nullptr);
    EXPECT_FALSE(platform_->why().empty());
}

TEST_P(gpu_device, copies_between_all_kinds_of_memory) {
    constexpr size_t size = 100000;
    std::unique_ptr<memory> first = allocate(size), second = allocate(size);
    std::unique_ptr<memory> pinned = allocate_pinned(size), pinned_too = allocate_pinned(size);
    std::vector<char> bytes = random_bytes(size, random_), result(size);
    {
        std::vector<char> gone = bytes;  // read before the call returns
        ASSERT_EQ(stream_->copy(first->address(), gone.data(), size), UCS_OK);
        std::fill(gone.begin(), gone.end(), '\0');
    }
    ASSERT_EQ(stream_->copy(second->address(), first->address(), size), UCS_OK);
    ASSERT_EQ(stream_->copy(pinned->address(), second->address(), size), UCS_OK);
    ASSERT_EQ(stream_->copy(pinned_too->address(), pinned->address(), size), UCS_OK);
    ASSERT_EQ(stream_->copy(first->address() + 1, pinned_too->address(), size - 1), UCS_OK);
    // Into pageable memory: there when the call returns.
    ASSERT_EQ(stream_->copy(result.data(), first->address(), size), UCS_OK);
    EXPECT_EQ(result[0], bytes[0]);
    EXPECT_TRUE(std::equal(result.begin() + 1, result.end(), bytes.begin()));
    ASSERT_EQ(stream_->copy(nullptr, nullptr, 0), UCS_OK);
    ASSERT_EQ(finish(*stream_), UCS_OK);
    EXPECT_EQ(std::memcmp(pinned->address(), bytes.data(), size), 0);
}

TEST_P(gpu_device, work_of_a_stream_runs_in_order) {
    constexpr size_t size = 4096;
    std::unique_ptr<memory> memories[] = {allocate(size), allocate(size), allocate(size)};
    std::unique_ptr<memory> pinned = allocate_pinned(size);
    std::vector<char> bytes = random_bytes(size, random_);
    std::memcpy(pinned->address(), bytes.data(), size);
    layout_view view = one_block(size);
    // Each step reads what the one before wrote; any other order leaves wrong bytes.
    ASSERT_EQ(stream_->copy(memories[0]->address(), pinned->address(), size), UCS_OK);
    for (int round = 0; round < 30; ++round) {
        char *from = memories[round % 3]->address(), *to = memories[(round + 1) % 3]->address();
        if (round % 2 == 0) {
            ASSERT_EQ(stream_->launch(all_of(direction::pack, view, from, to)), UCS_OK);
        } else {
            ASSERT_EQ(stream_->copy(to, from, size), UCS_OK);
        }
        ASSERT_EQ(stream_->copy(from, pinned->address() + size / 2, size / 2), UCS_OK);
    }
    EXPECT_EQ(get(memories[0]->address(), size), bytes);
}

TEST_P(gpu_device, streams_wait_for_marks_of_others) {
    constexpr size_t size = 1 << 16;
    std::unique_ptr<stream> other;
    ASSERT_EQ(device_->create_stream(&other), UCS_OK);
    std::unique_ptr<memory> shared = allocate(size), pinned = allocate_pinned(size);
    std::unique_ptr<memory> result = allocate_pinned(size);
    std::unique_ptr<event> written = make_event(), read = make_event();
    layout_view view = strided(size / 8, 8, 8);
    for (int round = 0; round < 20; ++round) {
        std::vector<char> bytes = random_bytes(size, random_);
        std::memcpy(pinned->address(), bytes.data(), size);
        ASSERT_EQ(
            stream_->launch(all_of(direction::unpack, view, shared->address(), pinned->address())),
            UCS_OK);
        ASSERT_EQ(stream_->record(*written), UCS_OK);
        ASSERT_EQ(other->wait(*written), UCS_OK);
        ASSERT_EQ(
            other->launch(all_of(direction::pack, view, shared->address(), result->address())),
            UCS_OK);
        ASSERT_EQ(other->record(*read), UCS_OK);
        ASSERT_EQ(read->synchronize(), UCS_OK);
        ASSERT_EQ(std::memcmp(result->address(), bytes.data(), size), 0) << "round " << round;
    }
}

TEST_P(gpu_device, marks_tell_when_work_is_done) {
    std::unique_ptr<event> mark = make_event();
    EXPECT_EQ(mark->query(), UCS_OK) << "never recorded";
    EXPECT_EQ(mark->synchronize(), UCS_OK);
    EXPECT_EQ(stream_->wait(*mark), UCS_OK);
    std::unique_ptr<memory> one = allocate(1 << 20), pinned = allocate_pinned(1 << 20);
    std::memset(pinned->address(), 7, pinned->size());
    for (int round = 0; round < 5; ++round) {
        ASSERT_EQ(stream_->copy(one->address(), pinned->address(), one->size()), UCS_OK);
        ASSERT_EQ(stream_->record(*mark), UCS_OK);
        ucs_status_t status;
        while ((status = mark->query()) == UCS_INPROGRESS) {
            std::this_thread::yield();
        }
        ASSERT_EQ(status, UCS_OK);
        ASSERT_EQ(mark->synchronize(), UCS_OK);
    }
}

TEST_P(gpu_device, destruction_of_a_stream_waits_for_its_work) {
    constexpr size_t size = 1 << 20;
    std::unique_ptr<memory> pinned = allocate_pinned(size), result = allocate_pinned(size);
    std::unique_ptr<memory> middle = allocate(size);
    std::memset(pinned->address(), 5, size);
    std::memset(result->address(), 6, size);
    ASSERT_EQ(stream_->copy(middle->address(), pinned->address(), size), UCS_OK);
    ASSERT_EQ(stream_->copy(result->address(), middle->address(), size), UCS_OK);
    stream_.reset();
    EXPECT_EQ(std::memcmp(result->address(), pinned->address(), size), 0);
}

TEST_P(gpu_device, a_launch_of_nothing_does_nothing) {
    transfer nothing;
    EXPECT_EQ(stream_->launch(nothing), UCS_OK);
    EXPECT_EQ(finish(*stream_), UCS_OK);
}

TEST_P(gpu_device, empty_memory_has_an_address) {
    std::unique_ptr<memory> none = allocate(0), no_pinned = allocate_pinned(0);
    EXPECT_NE(none->address(), nullptr);
    EXPECT_NE(no_pinned->address(), nullptr);
    EXPECT_EQ(none->size() + no_pinned->size(), 0u);
}

TEST_P(gpu_device, too_much_memory_is_refused) {
    std::unique_ptr<memory> none;
    EXPECT_EQ(device_->allocate(size_t(1) << 46, &none), UCS_ERR_NO_MEMORY);
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(finish(*stream_), UCS_OK) << "the device works on";
}

TEST_P(gpu_device, many_threads_use_a_device) {
    constexpr size_t size = 1 << 14;
    std::vector<std::thread> threads;
    for (int id = 0; id < 4; ++id) {
        threads.emplace_back([this, id] {
            std::unique_ptr<stream> own;
            ASSERT_EQ(device_->create_stream(&own), UCS_OK);
            for (int round = 0; round < 10; ++round) {
                std::unique_ptr<memory> one = allocate(size), pinned = allocate_pinned(size);
                std::memset(pinned->address(), id * 16 + round, size);
                ASSERT_EQ(own->copy(one->address(), pinned->address(), size), UCS_OK);
                std::vector<char> bytes(size);
                ASSERT_EQ(own->copy(bytes.data(), one->address(), size), UCS_OK);
                ASSERT_EQ(bytes, std::vector<char>(size, static_cast<char>(id * 16 + round)));
            }
        });
    }
    for (std::thread &one : threads) {
        one.join();
    }
}

}  // namespace
}  // namespace cuda_nc::gpu::test
