libcuda_nc_core_la_SOURCES += \
	src/ucs/exec/host/block_copy.inc \
	src/ucs/exec/host/disjoint.cc \
	src/ucs/exec/host/disjoint.hpp \
	src/ucs/exec/host/disjoint_list.cc \
	src/ucs/exec/host/host_executor.cc \
	src/ucs/exec/host/host_executor.hpp \
	src/ucs/exec/host/host_kernels.cc \
	src/ucs/exec/host/host_kernels.hpp \
	src/ucs/exec/host/kernels.inc \
	src/ucs/exec/host/kernels_avx2.cc \
	src/ucs/exec/host/kernels_avx512.cc \
	src/ucs/exec/host/kernels_neon.cc \
	src/ucs/exec/host/kernels_scalar.cc \
	src/ucs/exec/host/kernels_sse2.cc \
	src/ucs/exec/host/list_copy.inc \
	src/ucs/exec/host/split.cc \
	src/ucs/exec/host/split.hpp \
	src/ucs/exec/host/thread_pool.cc \
	src/ucs/exec/host/thread_pool.hpp \
	src/ucs/exec/host/walk.cc \
	src/ucs/exec/host/walk.hpp \
	src/ucs/exec/host/walk_order.cc \
	src/ucs/exec/host/walk_order.hpp
