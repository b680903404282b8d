libcuda_nc_core_la_SOURCES += \
	src/ucs/backend/backends.hpp \
	src/ucs/backend/platform.cc \
	src/ucs/backend/sim/access.cc \
	src/ucs/backend/sim/access.hpp \
	src/ucs/backend/sim/address_space.cc \
	src/ucs/backend/sim/address_space.hpp \
	src/ucs/backend/sim/arena.cc \
	src/ucs/backend/sim/arena.hpp \
	src/ucs/backend/sim/c_api.cc \
	src/ucs/backend/sim/execute.cc \
	src/ucs/backend/sim/execute.hpp \
	src/ucs/backend/sim/faults.cc \
	src/ucs/backend/sim/faults.hpp \
	src/ucs/backend/sim/ipc.cc \
	src/ucs/backend/sim/ipc.hpp \
	src/ucs/backend/sim/mover.cc \
	src/ucs/backend/sim/mover.hpp \
	src/ucs/backend/sim/options.hpp \
	src/ucs/backend/sim/pipe.cc \
	src/ucs/backend/sim/pipe.hpp \
	src/ucs/backend/sim/platform.cc \
	src/ucs/backend/sim/random.hpp \
	src/ucs/backend/sim/stream.cc \
	src/ucs/backend/sim/stream.hpp \
	src/ucs/backend/sim/user_stream.cc \
	src/ucs/backend/sim/user_stream.hpp

cuda_cxx_sources += \
	src/ucs/backend/cuda/context.cc \
	src/ucs/backend/cuda/context.hpp \
	src/ucs/backend/cuda/device.cc \
	src/ucs/backend/cuda/device.hpp \
	src/ucs/backend/cuda/driver.cc \
	src/ucs/backend/cuda/driver.hpp \
	src/ucs/backend/cuda/driver_age.hpp \
	src/ucs/backend/cuda/errors.cc \
	src/ucs/backend/cuda/errors.hpp \
	src/ucs/backend/cuda/ipc_conflicts.cc \
	src/ucs/backend/cuda/ipc_conflicts.hpp \
	src/ucs/backend/cuda/memory.cc \
	src/ucs/backend/cuda/memory.hpp \
	src/ucs/backend/cuda/memory_pool.cc \
	src/ucs/backend/cuda/memory_pool.hpp \
	src/ucs/backend/cuda/mover.cc \
	src/ucs/backend/cuda/mover.hpp \
	src/ucs/backend/cuda/platform.cc \
	src/ucs/backend/cuda/shared_pieces.cc \
	src/ucs/backend/cuda/shared_pieces.hpp \
	src/ucs/backend/cuda/sole_user.cc \
	src/ucs/backend/cuda/sole_user.hpp \
	src/ucs/backend/cuda/stream.cc \
	src/ucs/backend/cuda/stream.hpp

EXTRA_DIST += src/ucs/backend/sim/README.md
