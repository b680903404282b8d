# Calls that are copies, or messages and copies, by any MPI's compiler: make -f mpi_local.mk MPICXX=mpicxx OUTPUT=FILE
program := mpi_local
include $(dir $(abspath $(lastword $(MAKEFILE_LIST))))two_ranks.mk
