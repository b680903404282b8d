libcuda_nc_core_la_SOURCES += \
	src/ucs/exec/kernels/divide32.hpp \
	src/ucs/exec/kernels/kernels.cuh \
	src/ucs/exec/kernels/launch.hpp \
	src/ucs/exec/kernels/loaded_kernels.hpp \
	src/ucs/exec/kernels/locate.hpp \
	src/ucs/exec/kernels/move_blocks.hpp \
	src/ucs/exec/kernels/move_bytes.hpp \
	src/ucs/exec/kernels/move_pieces.hpp \
	src/ucs/exec/kernels/move_short_list.cc \
	src/ucs/exec/kernels/move_short_list.hpp \
	src/ucs/exec/kernels/move_tiles.hpp \
	src/ucs/exec/kernels/move_units.hpp \
	src/ucs/exec/kernels/move_words.hpp \
	src/ucs/exec/kernels/part.cc \
	src/ucs/exec/kernels/part.hpp \
	src/ucs/exec/kernels/pipe.cuh \
	src/ucs/exec/kernels/pipe_plan.cc \
	src/ucs/exec/kernels/pipe_plan.hpp \
	src/ucs/exec/kernels/policy.cc \
	src/ucs/exec/kernels/policy.hpp \
	src/ucs/exec/kernels/rules.hpp \
	src/ucs/exec/kernels/threads.hpp \
	src/ucs/exec/kernels/words.hpp

cuda_cxx_sources += \
	src/ucs/exec/kernels/launch.cc \
	src/ucs/exec/kernels/launch_pipe.cc \
	src/ucs/exec/kernels/loaded_kernels.cc

cuda_cu_sources += \
	src/ucs/exec/kernels/blocks.cu \
	src/ucs/exec/kernels/listed_words.cu \
	src/ucs/exec/kernels/pieces.cu \
	src/ucs/exec/kernels/pipe_blocks.cu \
	src/ucs/exec/kernels/pipe_units.cu \
	src/ucs/exec/kernels/pipe_windows.cu \
	src/ucs/exec/kernels/pipe_words.cu \
	src/ucs/exec/kernels/pull_short_list.cu \
	src/ucs/exec/kernels/pull_words.cu \
	src/ucs/exec/kernels/strided_words.cu \
	src/ucs/exec/kernels/tiles.cu \
	src/ucs/exec/kernels/units.cu \
	src/ucs/exec/kernels/windows.cu
