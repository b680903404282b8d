// One subtest: a function that every rank calls with a harness of its own, which counts what was
// wrong. Subtests never throw, never leave a message unmatched, and share no state.
#pragma once

#include <string>
#include <vector>

#include "support/made_type.hpp"
#include "support/memory.hpp"

namespace mpi_test {

class harness {
  public:
    explicit harness(memory &device) : device_(device) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    }
    int rank() const { return rank_; }
    int ranks() const { return ranks_; }
    int peer() const { return 1 - rank_; }  // with two ranks
    // The memory under test: of this rank, another rank's may be of another kind.
    memory &device() { return device_; }
    memory &host() { return host_; }

    // Counts a failure; the first is reported. Not to be called by several threads at once.
    void expect(bool right, const std::string &what) {
        if (!right && failures_++ == 0) {
            first_ = what.substr(0, 400);
        }
    }
    // Messages of this rank that must go from GPU to GPU, though one side of them is contiguous: of
    // its datatypes to the other's contiguous memory; all that it receives.
    int from_gpu_to_gpu = 0, to_gpu_from_gpu = 0;

    int failures() const { return failures_; }
    const std::string &first_failure() const { return first_; }

  private:
    memory &device_;
    host_memory host_;
    int rank_ = 0, ranks_ = 0;
    int failures_ = 0;
    std::string first_;
};

struct subtest {
    enum class kind {
        pair,        // two ranks
        collective,  // any number
        threads,     // two ranks, and MPI_THREAD_MULTIPLE
        sides,       // two ranks: contiguous memory on one side
    };
    const char *name;
    void (*run)(harness &);
    kind of = kind::pair;
    enum class where {
        everywhere,
        host,          // runs in host memory alone: it does not test GPU memory
        host_at_full,  // the same, only with --full: takes gigabytes and minutes
    } in = where::everywhere;
};

// In the order of their files.
std::vector<subtest> &all_subtests();

struct registration {
    registration(const char *name, void (*run)(harness &), subtest::kind of = subtest::kind::pair,
                 subtest::where in = subtest::where::everywhere) {
        all_subtests().push_back({name, run, of, in});
    }
};

}  // namespace mpi_test
