// Memory that messages are sent from and received in.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace cuda_nc::tools {

// Owns memory that begins at a multiple of 256 bytes.
class message_memory {
  public:
    virtual ~message_memory() = default;
    char *address() const noexcept { return address_; }
    // The bytes are there on return; `offset` and `size` within the memory. Throw run_error.
    virtual void write(size_t offset, const void *source, size_t size) = 0;
    virtual void read(size_t offset, void *target, size_t size) = 0;

  protected:
    char *address_ = nullptr;
};

// `kind`: host, gpu (simulated where UCX_CUDA_NC_GPU says so), managed, pool, shared-pool or
// virtual (see allocate_cuda_memory()); `gpu` is its ordinal. Throws run_error with a sentence for
// the user.
std::unique_ptr<message_memory> allocate_memory(const std::string &kind, int gpu, size_t size);

// Whether GPU memory is simulated here. Only this product can then read and write it.
bool is_gpu_simulated() noexcept;

// GPUs of this machine, real or simulated; 0 without a driver.
int gpu_count();

// "host", "NVIDIA H200", "simulated GPU 1"; throws run_error.
std::string describe_memory(const std::string &kind, int gpu);

}  // namespace cuda_nc::tools
