# Sources of src/ucs/base; see Makefile.am for the variables.
libcuda_nc_core_la_SOURCES += \
	src/ucs/base/bits.hpp \
	src/ucs/base/blocked_signals.hpp \
	src/ucs/base/compiler.hpp \
	src/ucs/base/definer.c \
	src/ucs/base/definer.h \
	src/ucs/base/elf_tables.h \
	src/ucs/base/elf_walker.cc \
	src/ucs/base/elf_walker.hpp \
	src/ucs/base/file_descriptor.hpp \
	src/ucs/base/fast_divide.hpp \
	src/ucs/base/given_up.hpp \
	src/ucs/base/loaded_objects.cc \
	src/ucs/base/loaded_objects.hpp \
	src/ucs/base/log.cc \
	src/ucs/base/log.hpp \
	src/ucs/base/number_map.hpp \
	src/ucs/base/nvtx.hpp \
	src/ucs/base/random_number.hpp \
	src/ucs/base/settings.cc \
	src/ucs/base/settings.hpp \
	src/ucs/base/settings_table.cc \
	src/ucs/base/settings_table.hpp \
	src/ucs/base/shared_descriptors.cc \
	src/ucs/base/shared_descriptors.hpp \
	src/ucs/base/statistics.cc \
	src/ucs/base/statistics.hpp \
	src/ucs/base/status.cc \
	src/ucs/base/status.hpp \
	src/ucs/base/text.hpp \
	src/ucs/base/tick_clock.cc \
	src/ucs/base/tick_clock.hpp \
	src/ucs/base/trace.cc \
	src/ucs/base/trace.hpp \
	src/ucs/base/ucx_instance.cc \
	src/ucs/base/ucx_instance.hpp \
	src/ucs/base/watched.hpp
if HAVE_NVTX
libcuda_nc_core_la_SOURCES += src/ucs/base/nvtx.cc
endif
