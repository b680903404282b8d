// A rank forks: its child must not touch the parent's messages, however the child ends.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "operations/exchange.hpp"

namespace mpi_test {
namespace {

// Whether the child ended as it should.
bool run_child(int how) {
    pid_t child = fork();
    if (child == 0) {
        if (how == 0) {
            _exit(7);
        } else if (how == 1) {
            std::exit(7);
        }
        execl("/bin/sh", "sh", "-c", "exit 7", static_cast<char *>(nullptr));
        _exit(127);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 7;
}

void fork_in_a_rank(harness &t) {
    uint64_t number = 0;
    for (int how = 0; how < 3; ++how) {
        for (const sample &s : few_samples()) {
            ++number;
            typed_buffer out(t.device(), s.type, s.count, key_of(t.rank(), number));
            typed_buffer in(t.device(), s.type, s.count, 7);
            MPI_Request requests[2];
            MPI_Irecv(in.address(), s.count, s.type.handle(), t.peer(), 1, MPI_COMM_WORLD,
                      &requests[0]);
            MPI_Isend(out.address(), s.count, s.type.handle(), t.peer(), 1, MPI_COMM_WORLD,
                      &requests[1]);
            t.expect(run_child(how), "child " + std::to_string(how));  // messages are in flight
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            in.expect(packed_content(in.map(), key_of(t.peer(), number)));
            t.expect(in.right() && out.right(), s.type.text());
        }
    }
}

const registration tests[] = {{"fork_in_a_rank", fork_in_a_rank}};

}  // namespace
}  // namespace mpi_test
