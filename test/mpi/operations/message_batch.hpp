// Many messages at once between two ranks, both ways.
#pragma once

#include <memory>
#include <vector>

#include "operations/exchange.hpp"

namespace mpi_test {

// `count` sends and as many receives, of mixed shapes and sizes, with tags from `first_tag`.
class message_batch {
  public:
    message_batch(harness &t, int count, int first_tag);
    int size() const { return static_cast<int>(in_.size()); }

    using start_send = int (*)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    MPI_Request send(int i, start_send call) const;
    MPI_Request receive(int i) const;
    // After all are complete.
    void check(harness &t, const char *what);

  private:
    const sample &sample_of(int i) const;

    int peer_, first_tag_;
    std::vector<std::unique_ptr<typed_buffer>> in_, out_;
};

}  // namespace mpi_test
