# Messages whose sides are laid out differently, by any MPI's compiler: make -f mpi_sides.mk MPICXX=mpicxx OUTPUT=FILE
program := mpi_sides
include $(dir $(abspath $(lastword $(MAKEFILE_LIST))))two_ranks.mk
