libcuda_nc_core_la_SOURCES += \
	src/ucs/exec/kernels/instances/clock.cuh \
	src/ucs/exec/kernels/instances/dealer.cuh \
	src/ucs/exec/kernels/instances/end_store.cuh \
	src/ucs/exec/kernels/instances/kernels.cuh \
	src/ucs/exec/kernels/instances/mover.cuh \
	src/ucs/exec/kernels/instances/mover_words.cuh \
	src/ucs/exec/kernels/instances/order_set.cuh \
	src/ucs/exec/kernels/instances/pipe.cuh \
	src/ucs/exec/kernels/launch.hpp \
	src/ucs/exec/kernels/launch_mover.hpp \
	src/ucs/exec/kernels/loaded_kernels.hpp \
	src/ucs/exec/kernels/move/blocks.hpp \
	src/ucs/exec/kernels/move/bytes.hpp \
	src/ucs/exec/kernels/move/divide32.hpp \
	src/ucs/exec/kernels/move/locate.hpp \
	src/ucs/exec/kernels/move/order_moves.hpp \
	src/ucs/exec/kernels/move/pack_units.hpp \
	src/ucs/exec/kernels/move/pairs.hpp \
	src/ucs/exec/kernels/move/pieces.hpp \
	src/ucs/exec/kernels/move/scatter_unit_words.hpp \
	src/ucs/exec/kernels/move/scatter_units.hpp \
	src/ucs/exec/kernels/move/short_list.cc \
	src/ucs/exec/kernels/move/short_list.hpp \
	src/ucs/exec/kernels/move/threads.hpp \
	src/ucs/exec/kernels/move/tiles.hpp \
	src/ucs/exec/kernels/move/unit_table.hpp \
	src/ucs/exec/kernels/move/units.hpp \
	src/ucs/exec/kernels/move/warp.hpp \
	src/ucs/exec/kernels/move/word.hpp \
	src/ucs/exec/kernels/move/words.hpp \
	src/ucs/exec/kernels/plan/choose.hpp \
	src/ucs/exec/kernels/plan/choose_blocks.cc \
	src/ucs/exec/kernels/plan/choose_tiles.cc \
	src/ucs/exec/kernels/plan/order_plan.cc \
	src/ucs/exec/kernels/plan/order_plan.hpp \
	src/ucs/exec/kernels/plan/order_set.hpp \
	src/ucs/exec/kernels/plan/pair_plan.cc \
	src/ucs/exec/kernels/plan/pair_plan.hpp \
	src/ucs/exec/kernels/plan/part.cc \
	src/ucs/exec/kernels/plan/part.hpp \
	src/ucs/exec/kernels/plan/pipe_plan.cc \
	src/ucs/exec/kernels/plan/pipe_plan.hpp \
	src/ucs/exec/kernels/plan/policy.cc \
	src/ucs/exec/kernels/plan/policy.hpp

cuda_cxx_sources += \
	src/ucs/exec/kernels/launch.cc \
	src/ucs/exec/kernels/launch_mover.cc \
	src/ucs/exec/kernels/launch_pairs.cc \
	src/ucs/exec/kernels/launch_pipe.cc \
	src/ucs/exec/kernels/loaded_kernels.cc

cuda_cu_sources += \
	src/ucs/exec/kernels/instances/blocks.cu \
	src/ucs/exec/kernels/instances/listed_words.cu \
	src/ucs/exec/kernels/instances/mover.cu \
	src/ucs/exec/kernels/instances/order_set.cu \
	src/ucs/exec/kernels/instances/pairs.cu \
	src/ucs/exec/kernels/instances/pieces.cu \
	src/ucs/exec/kernels/instances/pipe_blocks.cu \
	src/ucs/exec/kernels/instances/pipe_units.cu \
	src/ucs/exec/kernels/instances/pipe_windows.cu \
	src/ucs/exec/kernels/instances/pipe_words.cu \
	src/ucs/exec/kernels/instances/pull_short_list.cu \
	src/ucs/exec/kernels/instances/pull_words.cu \
	src/ucs/exec/kernels/instances/strided_words.cu \
	src/ucs/exec/kernels/instances/tiles.cu \
	src/ucs/exec/kernels/instances/units.cu \
	src/ucs/exec/kernels/instances/windows.cu
