// Messages beyond 32-bit numbers: spread over more than 4 GiB, or, with --full, as long as that.
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "operations/exchange.hpp"

namespace mpi_test {
namespace {

// Virtual memory of which only touched pages exist.
class sparse_memory {
  public:
    explicit sparse_memory(size_t length) : length_(length) {
        start_ = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    ~sparse_memory() {
        if (start_ != MAP_FAILED) {
            munmap(start_, length_);
        }
    }
    sparse_memory(const sparse_memory &) = delete;
    sparse_memory &operator=(const sparse_memory &) = delete;
    bool exists() const { return start_ != MAP_FAILED; }
    char *at(size_t offset) { return static_cast<char *>(start_) + offset; }

  private:
    size_t length_;
    void *start_;
};

// Eleven blocks of 5000 bytes, 600 MB apart; from the middle, so that displacements are negative.
void sparse_over_4_gib(harness &t) {
    constexpr int64_t stride = 600000001, blocks = 11, length = 5000;
    made_type forward = hvector(blocks, length, stride, basic("BYTE"));
    made_type backward = hvector(blocks, length, -stride, basic("BYTE"));
    forward.commit();
    backward.commit();
    sparse_memory memory(static_cast<size_t>(blocks * stride + length + 4096));
    t.expect(memory.exists(), "virtual memory");
    for (int round = 0; memory.exists() && round < 4; ++round) {
        bool turned = round % 2 != 0;
        const made_type &type = turned ? backward : forward;
        size_t origin = 2048 + (turned ? static_cast<size_t>((blocks - 1) * stride) : 0);
        bool sends = t.rank() == round / 2;
        for (int64_t i = 0; i < blocks; ++i) {
            size_t at = 2048 + static_cast<size_t>(i * stride);
            std::memset(memory.at(at - 64), 99, length + 128);
            std::memset(memory.at(at), sends ? static_cast<int>(i + 1) : 77, length);
        }
        if (sends) {
            plain_send(memory.at(origin), 1, type.handle(), t.peer(), 1);
        } else {
            plain_receive(memory.at(origin), 1, type.handle(), t.peer(), 1);
        }
        std::vector<char> expected(length + 128, 99);
        for (int64_t i = 0; i < blocks; ++i) {
            std::memset(&expected[64], static_cast<int>(i + 1), length);
            size_t at = 2048 + static_cast<size_t>(i * stride);
            t.expect(std::memcmp(memory.at(at - 64), expected.data(), expected.size()) == 0,
                     "block " + std::to_string(i) + " of round " + std::to_string(round));
        }
    }
}

// 2.2 GB packed: blocks of 1 MiB less 8 bytes, 1 MiB apart.
void longer_than_2_gib(harness &t) {
    constexpr size_t block = (1 << 20) - 8, stride = 1 << 20, blocks = 2150;
    made_type type = hvector(static_cast<int>(blocks), static_cast<int>(block / 8),
                             static_cast<int64_t>(stride), basic("DOUBLE"));
    type.commit();
    sparse_memory memory(blocks * stride);
    t.expect(memory.exists(), "virtual memory");
    if (!memory.exists()) {
        return;
    }
    for (size_t i = 0; i < blocks; ++i) {
        std::memset(memory.at(i * stride), t.rank() == 0 ? static_cast<int>(i % 251) : 0, block);
        std::memset(memory.at(i * stride + block), 99, 8);
    }
    if (t.rank() == 0) {
        plain_send(memory.at(0), 1, type.handle(), 1, 1);
    } else {
        plain_receive(memory.at(0), 1, type.handle(), 0, 1);
    }
    std::vector<char> expected(stride, 99);
    for (size_t i = 0; i < blocks; ++i) {
        std::memset(expected.data(), static_cast<int>(i % 251), block);
        t.expect(std::memcmp(memory.at(i * stride), expected.data(), stride) == 0,
                 "block " + std::to_string(i));
    }
}

const registration tests[] = {
    {"sparse_over_4_gib", sparse_over_4_gib, subtest::kind::pair, subtest::where::host},
    {"longer_than_2_gib", longer_than_2_gib, subtest::kind::pair, subtest::where::host_at_full},
};

}  // namespace
}  // namespace mpi_test
