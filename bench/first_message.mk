# The first messages of a process, by any MPI's compiler: make -f first_message.mk MPICXX=mpicxx OUTPUT=FILE
here := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
MPICXX ?= mpicxx
OUTPUT ?= first_message
sources := $(addprefix $(here),first_message.cc test_memory.cc)

$(OUTPUT): $(sources) $(here)test_memory.hpp
	$(MPICXX) -std=c++17 -O2 -Wall -Wextra -I$(here).. -I$(here)../src $(sources) -o $@ -ldl
