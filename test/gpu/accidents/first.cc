#include <memory>

#include "accidents/cases.hpp"

namespace gpu_test {
namespace {

// Of the one buffer there is.
std::unique_ptr<memory> early_memory;
void *early_address;

}  // namespace

void allocate_early(int rank) {
    early_memory = open_kind("malloc", rank);
    early_address = early_memory->allocate(case_options().bytes);
}

int run_first_early(const case_options &options) {
    struct given final : memory {
        void *allocate(size_t) override { return early_address; }
        void release(void *) override {}
        void copy(void *to, const void *from, size_t length) override {
            early_memory->copy(to, from, length);
        }
        bool is_device() const override { return true; }
    } where;
    strided buffer(where, case_options().bytes);
    return exchange_all(buffer, options);
}

int run_first_reset(const case_options &options) {
    for (int times = 0; times < 2; ++times) {
        auto where = open_kind("malloc", options.rank);
        where->allocate(1 << 20);
        CUdevice device;
        DRIVER_CALL(cuCtxGetDevice, &device);
        DRIVER_CALL(cuDevicePrimaryCtxReset, device);
    }
    auto where = open_kind("malloc", options.rank);
    strided buffer(*where, options.bytes);
    return exchange_all(buffer, options);
}

}  // namespace gpu_test
