// A transfer of a layout's bytes (pack, unpack or copy) that can be timed, by the host's executor
// or by a GPU's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/perftest/support/run_error.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::tools {

enum class memory_choice { host, device, pinned };

// Owns a source and a target. A laid-out side begins `misalign` bytes behind its alignment.
class timed_transfer {
  public:
    virtual ~timed_transfer() = default;

    // Makes the buffers hold these bytes. Sizes are those given to the constructor.
    virtual void fill(const std::vector<char> &source, const std::vector<char> &target) = 0;
    virtual std::vector<char> read_target() = 0;

    // Seconds of the first transfer, with nothing cached. Call it once, before run().
    virtual double first_use() = 0;
    // Bytes of the tables of blocks that a transfer reads; on a GPU those of the work list, after
    // first_use(). 0: the layout needs no table.
    virtual size_t table_bytes() const = 0;
    // Makes `times` transfers one after the other, complete on return; returns seconds for each.
    virtual double run(unsigned times) = 0;
    // The same for plain copies of as many bytes.
    virtual double plain_copy(unsigned times) = 0;

    // Allocates the buffers of sector_copy(). Returns the bytes of whole sectors that a transfer
    // reads and writes (see sectors.hpp); 0 where that is not known, where there is no memory for
    // it, and for pinned memory.
    virtual uint64_t prepare_sector_copy() = 0;
    // As plain_copy(), of half the bytes that prepare_sector_copy() returned: reading and writing
    // them touches as much memory as the transfer does.
    virtual double sector_copy(unsigned times) = 0;
};

struct transfer_request {
    layout_ref what;
    gpu::direction dir = gpu::direction::pack;
    memory_choice memory = memory_choice::host;
    size_t misalign = 0;
    int device = 0;
    unsigned max_sms = 0;
};

// Bytes of the laid-out side.
size_t laid_out_size(const layout &what);

// Throws run_error: no GPU, no memory.
std::unique_ptr<timed_transfer> make_timed_transfer(const transfer_request &request);

}  // namespace cuda_nc::tools
