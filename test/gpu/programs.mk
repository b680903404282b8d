# The programs of the tests on a real GPU:
#     make -f test/gpu/programs.mk MPICXX=mpicxx CUDA=DIRECTORY OUTPUT=DIRECTORY
here := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
MPICXX ?= mpicxx
CUDA ?= /usr/local/cuda
OUTPUT ?= .
flags := -std=c++17 -O2 -g -Wall -Wextra -Wshadow -Werror -I$(here) -I$(here)../mpi -isystem $(CUDA)/include

$(OUTPUT)/gpu-accidents: $(wildcard $(here)accidents/*.cc) $(wildcard $(here)accidents/*.hpp)
	@mkdir -p $(OUTPUT)
	$(MPICXX) $(flags) $(filter %.cc,$^) -o $@ -ldl
