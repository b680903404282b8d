# The first messages of a process, by any MPI's compiler: make -f first_message.mk MPICXX=mpicxx OUTPUT=FILE
program := first_message
include $(dir $(abspath $(lastword $(MAKEFILE_LIST))))two_ranks.mk
