libcuda_nc_core_la_SOURCES += \
	src/uct/cuda_nc/abi.hpp \
	src/uct/cuda_nc/abi_parameters.hpp \
	src/uct/cuda_nc/address.hpp \
	src/uct/cuda_nc/carrier.cc \
	src/uct/cuda_nc/carrier.hpp \
	src/uct/cuda_nc/component.cc \
	src/uct/cuda_nc/component.hpp \
	src/uct/cuda_nc/direct.hpp \
	src/uct/cuda_nc/ep.cc \
	src/uct/cuda_nc/ep.hpp \
	src/uct/cuda_nc/forward.hpp \
	src/uct/cuda_nc/iface.cc \
	src/uct/cuda_nc/iface.hpp \
	src/uct/cuda_nc/internal_ops.cc \
	src/uct/cuda_nc/internal_ops.hpp \
	src/uct/cuda_nc/md.cc \
	src/uct/cuda_nc/md.hpp \
	src/uct/cuda_nc/offering.cc \
	src/uct/cuda_nc/offering.hpp \
	src/uct/cuda_nc/receiving.cc \
	src/uct/cuda_nc/receiving.hpp \
	src/uct/cuda_nc/request_finder.hpp \
	src/uct/cuda_nc/ring.cc \
	src/uct/cuda_nc/ring.hpp \
	src/uct/cuda_nc/self_check.cc \
	src/uct/cuda_nc/self_check.hpp \
	src/uct/cuda_nc/sending.cc \
	src/uct/cuda_nc/sending.hpp \
	src/uct/cuda_nc/traffic.cc \
	src/uct/cuda_nc/traffic.hpp \
	src/uct/cuda_nc/transport.h \
	src/uct/cuda_nc/ucx.cc \
	src/uct/cuda_nc/ucx.hpp \
	src/uct/cuda_nc/wire.hpp
libuct_cudanc_la_SOURCES += src/uct/cuda_nc/module.c
