// The memory domains of GPU and of host memory: they register memory, make keys of it and unpack
// them. On the simulated GPU the first one also tells UCX which memory is a GPU's.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "uct/cuda_nc/one_sided/key.hpp"
#include "uct/cuda_nc/ucx/ucx.hpp"

namespace cuda_nc::uct {

enum class served_memory : uint8_t { gpu, host };

// One for each UCX that we are registered with, and each kind of memory. Lives for ever.
struct one_sided_component {
    abi::uct_component component;  // first: UCX hands it back
    abi::uct_tl transport;
    const ucx_api *ucx;
    served_memory served;

    static one_sided_component &of(abi::uct_component *component) {
        return *reinterpret_cast<one_sided_component *>(component);
    }
};

struct one_sided_domain {
    abi::uct_md super;
    const ucx_api *ucx;
    served_memory served;

    static one_sided_domain &of(abi::uct_md *md) {
        return *reinterpret_cast<one_sided_domain *>(md);
    }
};

// What mem_reg() gives for memory: UCX hands it back with each put and get, and asks for its key
// with each message.
class registered_memory {
  public:
    // The ordinal of a GPU, or list_mover::unreached, as host memory is.
    explicit registered_memory(int device) noexcept : device_(device) {}

    int device() const noexcept { return device_; }
    // Of GPU memory, [address, address + length) of it. Throws std::bad_alloc.
    packed_key key_of(uint64_t address, uint64_t length);

  private:
    const int device_;
    std::mutex mutex_;  // guards what follows
    // What keys need to be used: kept until the registration ends.
    std::vector<std::shared_ptr<void>> keepers_;
    packed_key last_ = {};  // that needs no keeper
};

// Whether the GPUs are simulated: copies of UCX's own do not reach their memory.
bool is_simulated() noexcept;

// Registers the components and their transports with a UCX that we know, once.
void register_one_sided(const ucx_api &ucx);

}  // namespace cuda_nc::uct
