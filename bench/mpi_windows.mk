# Puts and gets of derived types to windows, by any MPI's compiler: make -f mpi_windows.mk MPICXX=mpicxx OUTPUT=FILE
program := mpi_windows
include $(dir $(abspath $(lastword $(MAKEFILE_LIST))))two_ranks.mk
