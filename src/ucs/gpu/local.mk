libcuda_nc_core_la_SOURCES += \
	src/ucs/gpu/backends.hpp \
	src/ucs/gpu/box.cc \
	src/ucs/gpu/box.hpp \
	src/ucs/gpu/completion.hpp \
	src/ucs/gpu/device.hpp \
	src/ucs/gpu/pipe.hpp \
	src/ucs/gpu/platform.cc \
	src/ucs/gpu/shared_memory.cc \
	src/ucs/gpu/shared_memory.hpp \
	src/ucs/gpu/sim/access.cc \
	src/ucs/gpu/sim/access.hpp \
	src/ucs/gpu/sim/address_space.cc \
	src/ucs/gpu/sim/address_space.hpp \
	src/ucs/gpu/sim/arena.cc \
	src/ucs/gpu/sim/arena.hpp \
	src/ucs/gpu/sim/c_api.cc \
	src/ucs/gpu/sim/execute.cc \
	src/ucs/gpu/sim/execute.hpp \
	src/ucs/gpu/sim/faults.cc \
	src/ucs/gpu/sim/faults.hpp \
	src/ucs/gpu/sim/ipc.cc \
	src/ucs/gpu/sim/ipc.hpp \
	src/ucs/gpu/sim/options.hpp \
	src/ucs/gpu/sim/platform.cc \
	src/ucs/gpu/sim/pipe.cc \
	src/ucs/gpu/sim/pipe.hpp \
	src/ucs/gpu/sim/random.hpp \
	src/ucs/gpu/sim/stream.cc \
	src/ucs/gpu/sim/stream.hpp

cuda_cxx_sources += \
	src/ucs/gpu/cuda/context.cc \
	src/ucs/gpu/cuda/context.hpp \
	src/ucs/gpu/cuda/device.cc \
	src/ucs/gpu/cuda/device.hpp \
	src/ucs/gpu/cuda/driver.cc \
	src/ucs/gpu/cuda/driver.hpp \
	src/ucs/gpu/cuda/errors.cc \
	src/ucs/gpu/cuda/errors.hpp \
	src/ucs/gpu/cuda/ipc_conflicts.cc \
	src/ucs/gpu/cuda/ipc_conflicts.hpp \
	src/ucs/gpu/cuda/memory.cc \
	src/ucs/gpu/cuda/memory.hpp \
	src/ucs/gpu/cuda/platform.cc \
	src/ucs/gpu/cuda/stream.cc \
	src/ucs/gpu/cuda/stream.hpp

EXTRA_DIST += src/ucs/gpu/sim/README.md
