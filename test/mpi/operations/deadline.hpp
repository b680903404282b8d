// What a program says of itself when it hangs or dies.
#pragma once

namespace mpi_test {

// Once, after MPI_Init: from here on a fatal signal names the subtest that runs.
void watch_signals(int rank);
// The subtest `name` (which stays alive) has `seconds` from now on; then the process prints
// "FAIL name", every thread's stack where gdb is installed, and ends.
void start_deadline(const char *name, unsigned seconds);
void stop_deadline();

}  // namespace mpi_test
