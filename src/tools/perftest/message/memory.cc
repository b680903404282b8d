#include "tools/perftest/message/memory.hpp"

#include <cstdlib>
#include <cstring>

#include <fmt/core.h>

#include "cuda_nc/cuda_nc.h"
#include "tools/perftest/message/cuda_memory.hpp"
#include "tools/perftest/support/run_error.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::tools {
namespace {

class host_memory final : public message_memory {
  public:
    explicit host_memory(size_t size) {
        address_ = static_cast<char *>(std::aligned_alloc(4096, (size / 4096 + 1) * 4096));
        if (address_ == nullptr) {
            no_memory("host", size);
        }
    }
    ~host_memory() override { std::free(address_); }
    void write(size_t offset, const void *source, size_t size) override {
        std::memcpy(address_ + offset, source, size);
    }
    void read(size_t offset, void *target, size_t size) override {
        std::memcpy(target, address_ + offset, size);
    }
};

class simulated_memory final : public message_memory {
  public:
    simulated_memory(int ordinal, size_t size) {
        gpu::device *device = gpu::platform::instance().get_device(ordinal);
        if (device == nullptr) {
            throw run_error(fmt::format("there is no GPU {}: {} simulated", ordinal, gpu_count()));
        }
        if (device->allocate(size, &memory_) != UCS_OK) {
            no_memory("simulated GPU", size);
        }
        address_ = memory_->address();
    }
    void write(size_t offset, const void *source, size_t size) override {
        cuda_nc_sim_memcpy(address_ + offset, source, size);
    }
    void read(size_t offset, void *target, size_t size) override {
        cuda_nc_sim_memcpy(target, address_ + offset, size);
    }

  private:
    std::unique_ptr<gpu::memory> memory_;
};

}  // namespace

bool is_gpu_simulated() noexcept {
    return config().gpu == "sim";
}

int gpu_count() {
    return is_gpu_simulated() ? static_cast<int>(config().sim_devices)
                              : gpu::platform::instance().num_devices();
}

std::unique_ptr<message_memory> allocate_memory(const std::string &kind, int gpu, size_t size) {
    if (kind == "host") {
        return std::make_unique<host_memory>(size);
    }
    if (!is_gpu_simulated()) {
        return allocate_cuda_memory(kind, gpu, size);
    }
    if (kind != "gpu") {
        throw run_error(fmt::format("the simulated GPU has no {} memory", kind));
    }
    return std::make_unique<simulated_memory>(gpu, size);
}

std::string describe_memory(const std::string &kind, int gpu) {
    if (kind == "host") {
        return "host";
    }
    return is_gpu_simulated() ? fmt::format("simulated GPU {}", gpu) : name_of_gpu(gpu);
}

}  // namespace cuda_nc::tools
