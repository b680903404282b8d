# Messages from many allocations by turns, by any MPI's compiler: make -f mpi_turns.mk MPICXX=mpicxx OUTPUT=FILE
program := mpi_turns
include $(dir $(abspath $(lastword $(MAKEFILE_LIST))))two_ranks.mk
