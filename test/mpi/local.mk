# Sources of test/mpi; see Makefile.am for the variables.
