# Builds $(program).cc, a benchmark of two ranks, by any MPI's compiler. Included by $(program).mk.
here := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
MPICXX ?= mpicxx
OUTPUT ?= $(program)
sources := $(addprefix $(here),$(program).cc test_memory.cc)

$(OUTPUT): $(sources) $(addprefix $(here),two_ranks.hpp test_memory.hpp) \
	$(here)../src/tools/perftest/support/statistics.hpp
	$(MPICXX) -std=c++17 -O2 -Wall -Wextra -I$(here).. -I$(here)../src $(sources) -o $@ -ldl
