# Lists of blocks by UCP, by any MPI's compiler:
#   make -f ucp_lists.mk MPICXX=mpicxx UCX=ITS_FOLDER OUTPUT=FILE
# UCX: with include/ucp/api/ucp.h and lib/libucp.so.
here := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
MPICXX ?= mpicxx
OUTPUT ?= ucp_lists
sources := $(addprefix $(here),ucp_lists.cc test_memory.cc)

$(OUTPUT): $(sources) $(addprefix $(here),test_memory.hpp peer_window.hpp two_ranks.hpp) \
	$(here)../src/tools/perftest/support/statistics.hpp
	$(MPICXX) -std=c++17 -O2 -Wall -Wextra -I$(here).. -I$(here)../src -isystem $(UCX)/include \
		$(sources) -o $@ -L$(UCX)/lib -lucp -lucs -ldl
