libcuda_nc_core_la_SOURCES += \
	src/ucs/gpu/arrival_rhythm.hpp \
	src/ucs/gpu/block_pair.hpp \
	src/ucs/gpu/box.cc \
	src/ucs/gpu/box.hpp \
	src/ucs/gpu/completion.hpp \
	src/ucs/gpu/device.hpp \
	src/ucs/gpu/direction.hpp \
	src/ucs/gpu/given_order.cc \
	src/ucs/gpu/given_order.hpp \
	src/ucs/gpu/kernel_rules.hpp \
	src/ucs/gpu/known_memory.hpp \
	src/ucs/gpu/layout_move.cc \
	src/ucs/gpu/layout_move.hpp \
	src/ucs/gpu/mover.hpp \
	src/ucs/gpu/mover_desk.cc \
	src/ucs/gpu/mover_desk.hpp \
	src/ucs/gpu/order_ring.hpp \
	src/ucs/gpu/pace_trial.hpp \
	src/ucs/gpu/pipe.hpp \
	src/ucs/gpu/presence.cc \
	src/ucs/gpu/presence.hpp \
	src/ucs/gpu/shared_memory.cc \
	src/ucs/gpu/span.cc \
	src/ucs/gpu/span.hpp \
	src/ucs/gpu/shared_memory.hpp
