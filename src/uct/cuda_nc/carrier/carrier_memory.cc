#include "uct/cuda_nc/carrier/carrier_memory.hpp"

#include <new>

#include "ucs/base/log.hpp"
#include "ucs/base/status.hpp"

namespace cuda_nc::uct {

using namespace abi;

// A part of a message may be as short as one byte, so puts must be. How far they like to be aligned
// is no condition: slots begin at multiples of 4 KiB.
bool can_put_gpu_memory(const uct_iface_attr &iface, const uct_md_attr &domain) noexcept {
    constexpr uint64_t can = cap_flag::am_bcopy | cap_flag::put_zcopy | cap_flag::inter_node;
    constexpr uint64_t keeps = md_flag::reg | md_flag::need_rkey;
    return (iface.cap.flags & can) == can && (domain.cap.flags & keeps) == keeps &&
           (domain.cap.reg_mem_types & memory_type::cuda) != 0 && iface.cap.put.min_zcopy <= 1 &&
           iface.cap.put.max_zcopy >= least_put && iface.cap.put.max_iov >= 1 &&
           domain.rkey_packed_size >= 1 && domain.rkey_packed_size <= most_key_bytes;
}

carrier_memory::~carrier_memory() {
    for (const auto &one : all_) {
        ucx_.uct_md_mem_dereg(domain_, one->memh);
    }
}

bool carrier_memory::refuses() const noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    return refuses_;
}

bool carrier_memory::enter(registration &one, size_t size) noexcept {
    constexpr unsigned flags =
        mem_flag::hide_errors | mem_flag::remote_put | mem_flag::local_read | mem_flag::local_write;
    ucs_status_t status = size <= attr_.cap.max_reg
                              ? ucx_.uct_md_mem_reg(domain_, one.address, size, flags, &one.memh)
                              : UCS_ERR_INVALID_PARAM;
    if (status == UCS_OK) {
        status = ucx_.uct_md_mkey_pack(domain_, one.memh, one.key);
        if (status != UCS_OK) {
            ucx_.uct_md_mem_dereg(domain_, one.memh);
        }
    }
    if (status != UCS_OK) {
        nc_debug(
            "the network does not take GPU memory (%s); messages between hosts go by host "
            "memory",
            status_text(status));
    }
    return status == UCS_OK;
}

const carrier_memory::registration *carrier_memory::find(const region &part) noexcept try {
    const allocated_bytes whole = allocation_of(part);
    std::lock_guard<std::mutex> guard(mutex_);
    for (const auto &one : all_) {
        if (one->address == whole.address) {
            return one.get();
        }
    }
    if (refuses_) {
        return nullptr;
    }
    all_.reserve(all_.size() + 1);
    auto made = std::make_unique<registration>();
    made->address = whole.address;
    if (!enter(*made, whole.size)) {
        refuses_ = true;
        return nullptr;
    }
    all_.push_back(std::move(made));
    return all_.back().get();
} catch (const std::bad_alloc &) {
    return nullptr;
}

}  // namespace cuda_nc::uct
