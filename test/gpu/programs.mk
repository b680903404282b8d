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

# What else a program does on its GPU, for programs without CUDA.
$(OUTPUT)/gpu-bystander.so: $(addprefix $(here)accidents/,bystander.cc bystander.hpp kernels.cc driver.hpp)
	@mkdir -p $(OUTPUT)
	$(CXX) $(flags) -shared -fPIC $(filter %.cc,$^) -o $@ -ldl
