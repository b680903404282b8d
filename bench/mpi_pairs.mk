# The comparison in one process, by any Open MPI's compiler:
#   make -f mpi_pairs.mk MPICXX=mpicxx UCX=DIR OUTPUT=FILE
here := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
MPICXX ?= mpicxx
UCX ?= /usr
OUTPUT ?= mpi_pairs
sources := $(addprefix $(here),mpi_pairs.cc layout_catalogue.cc test_memory.cc)
headers := $(addprefix $(here),layout_catalogue.hpp test_memory.hpp) \
	$(addprefix $(here)../src/tools/perftest/,layouts/tables.hpp support/statistics.hpp)

$(OUTPUT): $(sources) $(headers)
	$(MPICXX) -std=c++17 -O2 -Wall -Wextra -rdynamic -I$(here).. -I$(here)../src -I$(UCX)/include \
		$(sources) -o $@ -ldl
