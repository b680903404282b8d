# Messages from many allocations by turns, by any MPI's compiler: make -f mpi_turns.mk MPICXX=mpicxx OUTPUT=FILE
here := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
MPICXX ?= mpicxx
OUTPUT ?= mpi_turns
sources := $(addprefix $(here),mpi_turns.cc test_memory.cc)

$(OUTPUT): $(sources) $(here)test_memory.hpp \
	$(here)../src/tools/perftest/support/statistics.hpp
	$(MPICXX) -std=c++17 -O2 -Wall -Wextra -I$(here).. -I$(here)../src $(sources) -o $@ -ldl
