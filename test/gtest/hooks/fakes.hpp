// The fake libraries, loaded RTLD_LOCAL, and what the tests use of them. The hooks of this process
// see an Open MPI 4.1.4 over a UCX 1.22.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fake_open_mpi.h"

namespace cuda_nc::hooks::test {

// "libfake_user.so" -> its full path in the build tree.
std::string fake_path(const std::string &file);

// A handle of a fake; the test program ends where it cannot be loaded.
void *load_fake(const std::string &file);

template <typename function>
function find_in_fake(const std::string &file, const char *symbol);
void *find_symbol(const std::string &file, const char *symbol);

template <typename function>
function find_in_fake(const std::string &file, const char *symbol) {
    return reinterpret_cast<function>(find_symbol(file, symbol));
}

// A datatype of the fake Open MPI, and the bytes it covers by plain arithmetic.
class datatype {
  public:
    datatype(const char *name, std::vector<fake_block_t> blocks, ptrdiff_t extent, size_t lie = 0)
        : blocks_(std::move(blocks)), of_{name, extent, lie, blocks_.size(), blocks_.data()} {}
    datatype(const datatype &) = delete;

    const fake_datatype_t *get() const { return &of_; }
    // Displacement of each packed byte of `count` elements.
    std::vector<ptrdiff_t> bytes(size_t count) const;

  private:
    std::vector<fake_block_t> blocks_;
    fake_datatype_t of_;
};

// Memory of the host or of the simulated GPU, with marks where nothing was written.
class buffer {
  public:
    buffer(size_t size, bool on_gpu);
    ~buffer();
    buffer(const buffer &) = delete;
    char *address() const { return address_; }
    void write(const std::vector<char> &bytes);
    std::vector<char> read() const;
    static constexpr char untouched = '\x5a';

  private:
    char *address_;
    size_t size_;
    bool on_gpu_;
};

// Bytes that differ from each other as far as they can, and from `buffer::untouched`.
std::vector<char> pattern(size_t size, unsigned seed);

fake_calls_t &calls();

// A call that ends in UCP's send, cancel or progress: a thread that is cancelled there ends by that
// and not the process, and what is thrown there comes out.
void expect_leavable(const std::function<void()> &call);

}  // namespace cuda_nc::hooks::test
