// Lent GPU memory that a carrier's network reads and writes by itself: registered with the
// carrier's memory domain, a whole allocation at a time, when it is first used there.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "uct/cuda_nc/memory/lent_memory.hpp"
#include "uct/cuda_nc/ucx/ucx.hpp"

namespace cuda_nc::uct {

// Whether slots in GPU memory can go from host to host over a carrier with these attributes. What
// they say decides alone, and nothing is tried: a registration may still be refused.
bool can_put_gpu_memory(const abi::uct_iface_attr &iface, const abi::uct_md_attr &domain) noexcept;

constexpr size_t most_key_bytes = 64;    // of a remote key on the wire
constexpr size_t least_put = 64u << 10;  // bytes that one put must take

// Thread safe. Ends before the memory domain does, and after every interface on it: no network
// touches the memory then.
class carrier_memory {
  public:
    struct registration {
        char *address;  // of the allocation
        void *memh;
        char key[most_key_bytes];
    };

    carrier_memory(const ucx_api &ucx, abi::uct_md *domain, const abi::uct_md_attr &attr) noexcept
        : ucx_(ucx), domain_(domain), attr_(attr) {}
    ~carrier_memory();

    // What the domain knows of the region's allocation, as long as it lives; null: it takes none.
    // One refusal is for ever, because a registration takes long.
    const registration *find(const region &part) noexcept;
    bool refuses() const noexcept;

    const ucx_api &ucx() const noexcept { return ucx_; }
    const abi::uct_md_attr &attributes() const noexcept { return attr_; }
    size_t key_bytes() const noexcept { return attr_.rkey_packed_size; }
    abi::uct_component *component() const noexcept { return domain_->component; }

  private:
    bool enter(registration &one, size_t size) noexcept;

    const ucx_api &ucx_;
    abi::uct_md *const domain_;
    const abi::uct_md_attr attr_;
    mutable std::mutex mutex_;
    bool refuses_ = false;
    // One for each allocation of lent memory, whose number is bounded.
    std::vector<std::unique_ptr<registration>> all_;
};

}  // namespace cuda_nc::uct
