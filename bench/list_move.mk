# Pair lists on GPUs, without a build of the product:
#   make -f list_move.mk NVCC=nvcc UCX=DIR OUTPUT=FILE
here := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
NVCC ?= nvcc
UCX ?= /usr
ARCH ?= native
OUTPUT ?= list_move
kernels := $(here)../src/ucs/exec/kernels/
sources := $(here)list_move.cc $(kernels)instances/pairs.cu $(kernels)plan/pair_plan.cc
headers := $(kernels)instances/kernels.cuh $(kernels)move/pairs.hpp $(kernels)plan/pair_plan.hpp

$(OUTPUT): $(sources) $(headers)
	$(NVCC) -std=c++17 -O3 -arch=$(ARCH) -I$(here)../src -I$(UCX)/include $(sources) -o $@
