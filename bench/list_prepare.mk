# Lists of pages by the C API, with an installed product:
#   make -f list_prepare.mk CUDA=DIR UCX=DIR CUDA_NC=PREFIX OUTPUT=FILE
here := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
CUDA ?= /usr/local/cuda
UCX ?= /usr
CUDA_NC ?= /usr/local
OUTPUT ?= list_prepare

$(OUTPUT): $(here)list_prepare.cc
	$(CXX) -std=c++17 -O2 -Wall -Wextra -Werror -I$(here)../include -isystem $(UCX)/include \
		-isystem $(CUDA)/include $< -o $@ -L$(CUDA_NC)/lib -lcuda_nc -L$(UCX)/lib -lucs \
		-L$(CUDA)/lib64 -lcudart
