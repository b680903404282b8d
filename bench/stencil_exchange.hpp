// The ways by which two faces go to the neighbours and two come from them.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/stencil_buffer.hpp"
#include "bench/stencil_grid.hpp"
#include "bench/stencil_work.hpp"

// What the ways work on; outlives them.
struct stencil_state {
    stencil_grid grid;
    MPI_Comm line;  // Cartesian, of one periodic dimension; ranks as in MPI_COMM_WORLD
    std::vector<stencil_buffer> fields;  // two, which change places after each step
    // Four faces each: sent to the low and to the high side, received from there. None on a
    // simulated GPU.
    std::unique_ptr<stencil_buffer> packed, plain;
    std::unique_ptr<stencil_work> work;
};

class stencil_exchange {
  public:
    virtual ~stencil_exchange() = default;

    static const std::vector<std::string> &names();
    // Whether the way sends contiguous GPU memory, which no MPI can do on the simulated GPU.
    static bool is_contiguous(const std::string &name);
    static std::unique_ptr<stencil_exchange> make(const std::string &name, stencil_state &state);

    // Exchanges the faces of a field: all that can be done without waiting, and the rest. After
    // that the halo is there for the work on halos that is started next.
    virtual void start(int field) = 0;
    virtual void finish(int field) = 0;
    // Waits until the halo is there for everybody.
    virtual void settle() {}
};
