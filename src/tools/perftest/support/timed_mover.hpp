// Something that moves a layout's bytes and can be timed: the host's executor or a GPU's.
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

// A source and a target; a laid-out side begins `misalign` bytes behind its alignment.
class mover {
  public:
    virtual ~mover() = default;

    // Makes the buffers hold these bytes. Sizes are those given to the constructor.
    virtual void fill(const std::vector<char> &source, const std::vector<char> &target) = 0;
    virtual std::vector<char> read_target() = 0;

    // Everything up to the first kernel's end, with nothing cached: seconds. Once, before the rest.
    virtual double first_use() = 0;
    // Bytes of the tables of blocks that a transfer reads: in a GPU's memory the whole work list,
    // after first_use(); 0 where the layout has none.
    virtual size_t table_bytes() const = 0;
    // `times` transfers after each other, complete on return; each takes (seconds):
    virtual double transfer(unsigned times) = 0;
    // The same for plain copies of as many bytes.
    virtual double plain_copy(unsigned times) = 0;

    // Makes room for sector_copy(); returns the bytes of whole sectors that a transfer reads and
    // writes (see sectors.hpp). 0: not known, no memory for it, or a side is in pinned memory.
    virtual uint64_t prepare_sector_copy() = 0;
    // As plain_copy(), of half as many bytes as prepare_sector_copy() has said: it touches as many
    // as the transfer does.
    virtual double sector_copy(unsigned times) = 0;
};

struct mover_request {
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
std::unique_ptr<mover> make_mover(const mover_request &request);

}  // namespace cuda_nc::tools
