# The demo program, by any MPI's compiler: make -f mpi_layouts.mk MPICXX=mpicxx OUTPUT=FILE
here := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
MPICXX ?= mpicxx
OUTPUT ?= mpi_layouts
sources := $(addprefix $(here),mpi_layouts.cc layout_catalogue.cc test_memory.cc)
headers := $(addprefix $(here),layout_catalogue.hpp test_memory.hpp) \
	$(addprefix $(here)../src/tools/perftest/,layouts/tables.hpp support/statistics.hpp)

$(OUTPUT): $(sources) $(headers)
	$(MPICXX) -std=c++17 -O2 -Wall -Wextra -I$(here).. -I$(here)../src $(sources) -o $@ -ldl
