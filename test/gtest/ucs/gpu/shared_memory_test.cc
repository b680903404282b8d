#include "ucs/gpu/shared_memory.hpp"

#include <signal.h>

#include "ucs/gpu/child_process.hpp"
#include "ucs/gpu/gpu_fixture.hpp"

namespace cuda_nc::gpu::test {
namespace {

constexpr size_t size = 300000;

class gpu_shared_memory : public gpu_test {
  protected:
    std::string peer(const char *test) const {
        return std::string("all/gpu_shared_memory.DISABLED_") + test + "/" + GetParam();
    }
    // What a kernel of this process reads and writes there.
    void fill(char *start, char first) {
        std::unique_ptr<memory> own = allocate(size);
        put(own->address(), pattern(first));
        ASSERT_EQ(stream_->launch(all_of(direction::pack, one_block(size), own->address(), start)),
                  UCS_OK);
        ASSERT_EQ(finish(*stream_), UCS_OK);
    }
    static std::vector<char> pattern(char first) {
        std::vector<char> bytes(size);
        for (size_t i = 0; i < size; ++i) {
            bytes[i] = static_cast<char>(first + i * 13 + i / 251);
        }
        return bytes;
    }
    static std::vector<char> bytes_at(const memory &where) {
        return std::vector<char>(where.address(), where.address() + size);
    }
};
INSTANTIATE_TEST_SUITE_P(all, gpu_shared_memory, testing::ValuesIn(platform_names()),
                         name_of_platform());

TEST_P(gpu_shared_memory, DISABLED_offers) {
    std::unique_ptr<memory> mine;
    ipc_handle handle;
    ASSERT_EQ(make_shared_memory(*device_, size, &mine, &handle), UCS_OK);
    fill(mine->address(), 'a');
    ASSERT_TRUE(send_to_parent(&handle, sizeof(handle)));
    char written;
    ASSERT_TRUE(receive_from_parent(&written, 1));
    EXPECT_EQ(bytes_at(*mine), pattern('b'));
}

TEST_P(gpu_shared_memory, kernels_of_two_processes_reach_it) {
    child_process child(peer("offers"), {});
    ipc_handle handle;
    ASSERT_TRUE(child.receive(&handle, sizeof(handle))) << child.output();
    std::unique_ptr<memory> theirs;
    ASSERT_EQ(open_shared_memory(*device_, handle, &theirs), UCS_OK);
    ASSERT_GE(theirs->size(), size);
    EXPECT_EQ(platform_->query(theirs->address()).kind, memory_kind::pinned);
    EXPECT_EQ(bytes_at(*theirs), pattern('a'));
    fill(theirs->address(), 'b');
    ASSERT_TRUE(child.send("!", 1));
    EXPECT_EQ(child.wait(), 0) << child.output();
    EXPECT_EQ(bytes_at(*theirs), pattern('b')) << "it stays while it is mapped";
    char *start = theirs->address();
    theirs.reset();
    EXPECT_EQ(platform_->query(start).kind, memory_kind::host);
}

TEST_P(gpu_shared_memory, of_a_killed_process_cannot_be_opened) {
    child_process child(peer("offers"), {});
    ipc_handle handle;
    ASSERT_TRUE(child.receive(&handle, sizeof(handle))) << child.output();
    std::unique_ptr<memory> before, after;
    ASSERT_EQ(open_shared_memory(*device_, handle, &before), UCS_OK);
    child.kill();
    EXPECT_EQ(child.wait(), -SIGKILL);
    EXPECT_EQ(bytes_at(*before), pattern('a')) << "nobody crashes because a peer did";
    EXPECT_EQ(open_shared_memory(*device_, handle, &after), UCS_ERR_UNSUPPORTED);
}

TEST_P(gpu_shared_memory, forged_handles_are_refused) {
    child_process child(peer("offers"), {});
    ipc_handle handle;
    ASSERT_TRUE(child.receive(&handle, sizeof(handle))) << child.output();
    for (size_t i = 0; i < 32; ++i) {
        for (unsigned char flip : {0x01, 0x02, 0x80, 0xff}) {
            ipc_handle forged = handle;
            forged.bytes[i] ^= flip;
            std::unique_ptr<memory> opened;
            ucs_status_t status = open_shared_memory(*device_, forged, &opened);
            if (status == UCS_OK) {  // a thread's number is as good as its process's
                EXPECT_EQ(bytes_at(*opened), pattern('a')) << i;
            } else {
                EXPECT_EQ(status, UCS_ERR_UNSUPPORTED) << i;
            }
        }
    }
    std::unique_ptr<memory> opened;
    EXPECT_EQ(open_shared_memory(*device_, ipc_handle{}, &opened), UCS_ERR_UNSUPPORTED);
    child.kill();
    child.wait();
}

}  // namespace
}  // namespace cuda_nc::gpu::test
