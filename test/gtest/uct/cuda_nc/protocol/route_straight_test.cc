// One side's part of a message whose other side is contiguous memory: as an order and as a launch.
#include "uct/cuda_nc/protocol/route_straight.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/protocol/direct_messages.hpp"
#include "uct/cuda_nc/protocol/message_services.hpp"

namespace cuda_nc::uct {
namespace {

// Blocks of 8 bytes with gaps of 8.
class rows final : public user_buffer {
  public:
    rows(gpu::device &where, gpu::direction dir, uint64_t bytes) : dir_(dir), bytes_(bytes) {
        EXPECT_EQ(where.allocate(2 * bytes, &memory_), UCS_OK);
        EXPECT_EQ(where.create_stream(&stream_), UCS_OK);
        view_.kind = shape::strided;
        view_.num_blocks = view_.num_dims = 1;
        view_.list_size = view_.block_length = 8;
        view_.packed_size = bytes;
        view_.by_list = view_.by_block = fast_divide(8);
        view_.dims[0] = {bytes / 8, 16};
        view_.by_dim[0] = fast_divide(bytes / 8);
    }
    int device() const noexcept override { return 0; }
    uint64_t packed_bytes() const noexcept override { return bytes_; }
    ucs_status_t enqueue(uint64_t offset, uint64_t length, char *packed,
                         gpu::event &done) noexcept override {
        ++launches;
        gpu::transfer work;
        work.dir = dir_;
        work.layout = view_;
        work.base = memory_->address();
        work.packed = packed;
        work.packed_offset = offset;
        work.length = length;
        const ucs_status_t status = stream_->launch(work);
        return status != UCS_OK ? status : stream_->record(done);
    }
    ucs_status_t describe(gpu::pipe_work &work, bool) noexcept override {
        work.dir = dir_;
        work.layout = &view_;
        work.base = memory_->address();
        work.into_own_memory = dir_ == gpu::direction::unpack;
        return tables_are_there ? UCS_OK : UCS_INPROGRESS;
    }
    char *address() const { return memory_->address(); }

    bool tables_are_there = true;
    int launches = 0;

  private:
    const gpu::direction dir_;
    const uint64_t bytes_;
    layout_view view_;
    std::unique_ptr<gpu::memory> memory_;
    std::unique_ptr<gpu::stream> stream_;
};

class straight_move_test : public testing::Test {
  protected:
    void SetUp() override {
        if (gpu::platform::instance().num_devices() == 0) {
            GTEST_SKIP() << "no GPU, not even a simulated one";
        }
        device_ = gpu::platform::instance().get_device(0);
        ASSERT_EQ(device_->create_stream(&stream_), UCS_OK);
        ASSERT_EQ(device_->create_event(&mark_), UCS_OK);
        ucx_.uct_worker_progress_register_safe = [](void *, unsigned (*)(void *), void *, unsigned,
                                                    int *id_p) { *id_p = 1; };
        ucx_.uct_worker_progress_unregister_safe = [](void *, int *id_p) { *id_p = -1; };
        iface_.ucx = &ucx_;
        services_ = std::make_unique<message_services>(
            iface_, [](void *) -> unsigned { return 0; }, nullptr);
    }
    void copy(void *to, const void *from, size_t length) {
        ASSERT_EQ(stream_->copy(to, from, length), UCS_OK);
        ASSERT_EQ(stream_->record(*mark_), UCS_OK);
        ASSERT_EQ(mark_->synchronize(), UCS_OK);
    }
    static std::vector<char> numbered(size_t length, unsigned salt) {
        std::vector<char> made(length);
        for (size_t i = 0; i < length; ++i) {
            made[i] = static_cast<char>(i * 31 + i / 251 + salt);
        }
        return made;
    }

    // Moves `bytes` between rows and contiguous memory. Returns whether an order did it.
    bool move(gpu::direction dir, uint64_t bytes, bool tables_are_there, bool stops) {
        const bool packs = dir == gpu::direction::pack;
        rows user(*device_, dir, bytes);
        user.tables_are_there = tables_are_there;
        std::unique_ptr<gpu::memory> there;
        EXPECT_EQ(device_->allocate(bytes + 32, &there), UCS_OK);
        std::vector<char> laid_out = numbered(2 * bytes, 1), packed = numbered(bytes + 32, 7);
        copy(user.address(), laid_out.data(), laid_out.size());
        copy(there->address(), packed.data(), packed.size());
        const uint64_t orders = counters::all().orders;
        straight_move one(*services_, 0, 1);
        EXPECT_TRUE(one.begin(user, {nullptr, there->address() + 16}, bytes));
        EXPECT_TRUE(one.runs());
        if (stops) {
            one.stop();  // waits
        }
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (one.progress() == UCS_INPROGRESS && std::chrono::steady_clock::now() < limit) {
        }
        EXPECT_EQ(one.progress(), UCS_OK);
        EXPECT_FALSE(one.runs());
        for (uint64_t i = 0; i < bytes; ++i) {
            char &far = packed[16 + i], &near = laid_out[i / 8 * 16 + i % 8];
            (packs ? far : near) = packs ? near : far;
        }
        std::vector<char> seen(laid_out.size());
        copy(seen.data(), user.address(), seen.size());
        EXPECT_EQ(seen, laid_out);
        seen.resize(packed.size());
        copy(seen.data(), there->address(), seen.size());
        EXPECT_EQ(seen, packed);
        const bool ordered = counters::all().orders != orders;
        EXPECT_EQ(user.launches, ordered ? 0 : 1);
        return ordered;
    }

    ucx_api ucx_ = {};
    interface iface_ = {};
    gpu::device *device_ = nullptr;
    std::unique_ptr<gpu::stream> stream_;
    std::unique_ptr<gpu::event> mark_;
    std::unique_ptr<message_services> services_;
};

TEST_F(straight_move_test, is_an_order_where_a_mover_takes_it) {
    int ordered = 0;
    for (int i = 0; i < 24; ++i) {
        const uint64_t bytes = i % 3 == 0 ? 8 : i % 3 == 1 ? 4096 : 200000;
        ordered += move(i % 2 == 0 ? gpu::direction::pack : gpu::direction::unpack, bytes, true,
                        i % 5 == 0)
                       ? 1
                       : 0;
    }
    // A GPU's mover takes orders where they come often.
    if (std::string(gpu::platform::instance().name()) == "sim") {
        EXPECT_GT(ordered, 0);
    }
}

TEST_F(straight_move_test, is_launched_where_an_order_cannot_serve_it) {
    for (const bool stops : {false, true}) {
        EXPECT_FALSE(move(gpu::direction::pack, gpu::longest_order + 8, true, stops));
        EXPECT_FALSE(move(gpu::direction::unpack, 4096, false, stops)) << "tables are on their way";
    }
}

}  // namespace
}  // namespace cuda_nc::uct
