# Messages of several sizes, by any MPI's compiler: make -f mpi_sizes.mk MPICXX=mpicxx OUTPUT=FILE
program := mpi_sizes
include $(dir $(abspath $(lastword $(MAKEFILE_LIST))))two_ranks.mk
