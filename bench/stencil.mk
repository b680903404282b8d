# The stencil, by any MPI's compiler and CUDA's:
#   make -f stencil.mk MPICXX=mpicxx NVCC=nvcc OUTPUT=FILE
# NVCC=no leaves out the kernels: then fields lie in host or simulated GPU memory.
here := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
MPICXX ?= mpicxx
NVCC ?= nvcc
ARCH ?= sm_90
OUTPUT ?= stencil
sources := $(addprefix $(here),stencil_main.cc stencil_run.cc stencil_exchange.cc stencil_check.cc \
	stencil_cpu.cc test_memory.cc)
headers := $(addprefix $(here),stencil_buffer.hpp stencil_check.hpp stencil_exchange.hpp \
	stencil_grid.hpp stencil_run.hpp stencil_work.hpp test_memory.hpp) \
	$(here)../src/tools/perftest/support/statistics.hpp
includes := -I$(here).. -I$(here)../src
ifeq ($(NVCC),no)
kernels :=
flags := -DSTENCIL_WITHOUT_CUDA
else
toolkit := $(dir $(shell command -v $(NVCC)))..
kernels := $(OUTPUT).kernels.o
libraries := -L$(toolkit)/lib64 -L$(toolkit)/lib -lcudart_static -lrt -lpthread
endif

$(OUTPUT): $(sources) $(headers) $(kernels)
	$(MPICXX) -std=c++17 -O2 -Wall -Wextra $(flags) $(includes) $(sources) $(kernels) -o $@ \
		$(libraries) -ldl

$(OUTPUT).kernels.o: $(here)stencil.cu $(headers)
	$(NVCC) -std=c++17 -O3 -arch=$(ARCH) $(includes) -c $< -o $@
