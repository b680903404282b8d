// Puts and gets of this process into and out of the memory of another.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ucs/gpu/child_process.hpp"
#include "uct/cuda_nc/copy_bytes.hpp"
#include "uct/cuda_nc/one_sided/mover.hpp"
#include "uct/cuda_nc/one_sided/stub_worker.hpp"

namespace cuda_nc::uct {

using direction = list_mover::direction;

// A block of pairs, and where a list ends that has room for the first hundred of them.
constexpr uint64_t block_begin = 32 << 20, block_end = block_begin + (3 << 20);
constexpr uint64_t list_end = block_begin + 100 * gpu::block_pair::best_length;
constexpr size_t pairs_before = list_mover::list_pairs - 100;
constexpr uint64_t memory_bytes = 64 << 20;
constexpr char last_byte = 0x5a;

// Memory in which the last bytes before list_end and block_end are last_byte.
inline std::unique_ptr<gpu::memory> make_memory() {
    std::unique_ptr<gpu::memory> made;
    gpu::device *device = gpu::platform::instance().get_device(0);
    if (device != nullptr && device->allocate(memory_bytes, &made) == UCS_OK) {
        copy(made->address() + list_end - 1, &last_byte, 1);
        copy(made->address() + block_end - 1, &last_byte, 1);
    }
    return made;
}

inline packed_key key_of(const gpu::memory &memory) {
    return make_key(0, reinterpret_cast<uintptr_t>(memory.address()), memory.size(), nullptr);
}

// Memory of another process, and of this one.
class between_processes {
  public:
    explicit between_processes(const packed_key &there) : key_(there), local_(make_memory()) {}

    bool is_there() const { return local_ != nullptr; }
    char *local() const { return local_->address(); }
    ucs_status_t add(direction dir, uint64_t offset, uint64_t length, int lane = 0) {
        return mover_.add(lane, dir, local() + offset, key_, key_.base() + offset, length);
    }
    ucs_status_t add_between(direction dir, uint64_t here, uint64_t there, uint64_t length) {
        return mover_.add(0, dir, local() + here, key_, key_.base() + there, length);
    }
    // As UCX does where there is no room yet: it progresses and tries again.
    ucs_status_t add_when_room(direction dir, uint64_t offset, uint64_t length) {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        ucs_status_t status = add(dir, offset, length);
        while (status == UCS_ERR_NO_RESOURCE && std::chrono::steady_clock::now() < limit) {
            mover_.progress();
            status = add(dir, offset, length);
        }
        return status;
    }
    // Bytes, until a list has room for a hundred pairs more.
    ucs_status_t add_bytes() {
        ucs_status_t status = UCS_OK;
        for (size_t i = 0; i < pairs_before && status == UCS_OK; ++i) {
            status = add(direction::get, 16 * i, 1);
        }
        return status;
    }
    // The key of a process that is not there.
    ucs_status_t add_unreached() {
        packed_key gone = {};
        gone.base = gone.begin = 4096;
        gone.size = gone.length = 4096;
        gone.is_shared = sharing::gpu_memory;
        remote_key nowhere(gone);
        return mover_.add(0, direction::get, local(), nowhere, 4096, 8);
    }
    void complete_with(operation &one) { mover_.complete_with(0, &one.end); }
    // As UCX's worker does, until it has ended.
    bool run_until_end(const operation &one) {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (!one.has_ended() && std::chrono::steady_clock::now() < limit) {
            if (is_registered) {
                mover_.progress();
            }
        }
        return one.has_ended();
    }
    list_mover &mover() { return mover_; }

  private:
    const ucx_api ucx_ = worker_calls();
    remote_key key_;
    std::unique_ptr<gpu::memory> local_;
    list_mover mover_{ucx_, nullptr, nullptr};
};

// Runs `scenario` in a child with these faults and settings; the peer's memory is this process's.
inline void run_with_faults(const char *scenario, const std::vector<std::string> &environment) {
    if (std::string(gpu::platform::instance().name()) != "sim") {
        GTEST_SKIP() << "injects failures into the simulated GPU";
    }
    const std::unique_ptr<gpu::memory> memory = make_memory();
    ASSERT_NE(memory, nullptr);
    const packed_key key = key_of(*memory);
    gpu::test::child_process child(scenario, environment);
    ASSERT_TRUE(child.send(&key, sizeof(key)));
    char done;
    EXPECT_TRUE(child.receive(&done, 1)) << child.output();
    EXPECT_EQ(child.wait(), 0) << child.output();
}

// The other process runs gather_peer.DISABLED_lends_memory (gather_test.cc).
class gather_test : public testing::Test {
  protected:
    void SetUp() override {
        if (gpu::platform::instance().get_device(0) == nullptr) {
            GTEST_SKIP() << "no GPU here";
        }
        packed_key key;
        ASSERT_TRUE(child_.receive(&key, sizeof(key))) << child_.output();
        both_ = std::make_unique<between_processes>(key);
        ASSERT_TRUE(both_->is_there());
    }

    // Reads the byte while others may write it, until it is last_byte.
    bool await_last_byte(uint64_t offset) {
#if defined(__SANITIZE_THREAD__)
        std::this_thread::sleep_for(std::chrono::seconds(2));  // such reads are what it looks for
        return true;
#else
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        char seen = 0;
        while (seen != last_byte && std::chrono::steady_clock::now() < limit) {
            copy(&seen, both_->local() + offset, 1);
        }
        return seen == last_byte;
#endif
    }
    // And a while longer: the kernel moves the others of its bytes, and tells of its end.
    void await_copied(uint64_t offset) {
        EXPECT_TRUE(await_last_byte(offset));
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }

    gpu::test::child_process child_{"gather_peer.DISABLED_lends_memory", {}};
    std::unique_ptr<between_processes> both_;
};

}  // namespace cuda_nc::uct
