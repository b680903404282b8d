#include "hooks/fakes.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuda_nc/cuda_nc.h"

namespace cuda_nc::hooks::test {

std::string fake_path(const std::string &file) {
    return std::string(BUILD_DIRECTORY "/test/gtest/hooks/fakes/") + file;
}

void *load_fake(const std::string &file) {
    void *handle = dlopen(fake_path(file).c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        std::exit(2);
    }
    return handle;
}

void *find_symbol(const std::string &file, const char *symbol) {
    void *address = dlsym(load_fake(file), symbol);
    if (address == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        std::exit(2);
    }
    return address;
}

std::vector<ptrdiff_t> datatype::bytes(size_t count) const {
    std::vector<ptrdiff_t> all;
    for (size_t element = 0; element < count; ++element) {
        for (const fake_block_t &block : blocks_) {
            for (size_t i = 0; i < block.length; ++i) {
                all.push_back(static_cast<ptrdiff_t>(element) * of_.extent + block.displacement +
                              static_cast<ptrdiff_t>(i));
            }
        }
    }
    return all;
}

buffer::buffer(size_t size, bool on_gpu)
    : address_(static_cast<char *>(on_gpu ? cuda_nc_sim_malloc(size) : std::malloc(size))),
      size_(size),
      on_gpu_(on_gpu) {
    if (address_ == nullptr) {
        std::fprintf(stderr, "no memory for a test\n");
        std::exit(2);
    }
    write(std::vector<char>(size, untouched));
}

buffer::~buffer() {
    on_gpu_ ? cuda_nc_sim_free(address_) : std::free(address_);
}

void buffer::write(const std::vector<char> &bytes) {
    cuda_nc_sim_memcpy(address_, bytes.data(), size_);
}

std::vector<char> buffer::read() const {
    std::vector<char> bytes(size_);
    cuda_nc_sim_memcpy(bytes.data(), address_, size_);
    return bytes;
}

std::vector<char> pattern(size_t size, unsigned seed) {
    std::vector<char> bytes(size);
    for (size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<char>((i * 31 + i / 251 + seed * 17) % 89);  // below untouched
    }
    return bytes;
}

fake_calls_t &calls() {
    return *find_in_fake<fake_calls_t *>("libfake_open_mpi.so", "fake_calls");
}

void expect_leavable(const std::function<void()> &call) {
    static std::atomic<bool> is_inside;
    const auto set_inside =
        find_in_fake<void (*)(void (*)())>("libucp_fake.so", "fake_ucp_set_inside");
    set_inside([] { throw 17; });
    EXPECT_THROW(call(), int);
    set_inside([] {
        for (is_inside = true;;) {
            usleep(1000);
        }
    });
    is_inside = false;
    pthread_t thread;
    ASSERT_EQ(pthread_create(
                  &thread, nullptr,
                  [](void *of) -> void * {
                      (*static_cast<const std::function<void()> *>(of))();
                      return nullptr;
                  },
                  const_cast<std::function<void()> *>(&call)),
              0);
    while (!is_inside) {
        usleep(1000);
    }
    EXPECT_EQ(pthread_cancel(thread), 0);
    void *result = nullptr;
    EXPECT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    set_inside(nullptr);
}

}  // namespace cuda_nc::hooks::test

int main(int argc, char **argv) {
    setenv("UCX_CUDA_NC_GPU", "sim", 1);
    unsetenv("UCX_CUDA_NC_HOST_ENGINE");
    unsetenv("LD_PRELOAD");
    testing::InitGoogleTest(&argc, argv);
    cuda_nc::hooks::test::load_fake("libfake_open_mpi.so");
    return RUN_ALL_TESTS();
}
