// What the application of the stencil benchmark does itself: the stencil, and packing by hand.
#pragma once

#include <memory>
#include <string>

#include "bench/stencil_buffer.hpp"
#include "bench/stencil_grid.hpp"

// Calls that start something may return before it is done. Work on halos (pack, unpack, boundary)
// is done in the order of the calls; the interior runs beside it.
class stencil_work {
  public:
    virtual ~stencil_work() = default;

    // By kernels on GPU `rank` modulo their number. Ends the program where there is none.
    static std::unique_ptr<stencil_work> make_gpu(const stencil_grid &grid);
    // By loops of the CPU. Simulated GPU memory is copied to the host and back for it.
    static std::unique_ptr<stencil_work> make_cpu(const stencil_grid &grid, bool simulated);

    virtual std::string processor() const = 0;
    virtual void start_interior(stencil_buffer &now, stencil_buffer &next) = 0;
    virtual void start_boundary(stencil_buffer &now, stencil_buffer &next) = 0;
    // Both faces to the first two faces of `faces`, and from the last two into the halo.
    virtual void start_pack(stencil_buffer &field, stencil_buffer &faces) = 0;
    virtual void start_unpack(stencil_buffer &faces, stencil_buffer &field) = 0;
    virtual void wait_halo() = 0;
    virtual void wait_all() = 0;
    // Microseconds that the last interior took, once it has been waited for.
    virtual double interior_us() = 0;
};
