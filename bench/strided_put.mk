# Strided puts beside messages, by any MPI's compiler:
#   make -f strided_put.mk MPICXX=mpicxx PRODUCT=INSTALLED UCX=ITS_FOLDER OUTPUT=FILE
# UCX: with include/ucp/api/ucp.h and lib/libucp.so.
here := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
MPICXX ?= mpicxx
OUTPUT ?= strided_put
sources := $(addprefix $(here),strided_put.cc test_memory.cc)

$(OUTPUT): $(sources) $(here)test_memory.hpp $(here)peer_window.hpp \
	$(here)../src/tools/perftest/support/statistics.hpp
	$(MPICXX) -std=c++17 -O2 -Wall -Wextra -I$(here).. -I$(here)../src -I$(here)../include \
		-isystem $(UCX)/include $(sources) -o $@ -L$(PRODUCT)/lib -lcuda_nc -L$(UCX)/lib \
		-lucp -lucs -ldl
