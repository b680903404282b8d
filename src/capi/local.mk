libcuda_nc_messages_la_SOURCES += \
	include/cuda_nc/cuda_nc.h \
	src/capi/create.cc \
	src/capi/create.hpp \
	src/capi/create_lists.cc \
	src/capi/create_mpi.cc \
	src/capi/create_regular.cc \
	src/capi/error.cc \
	src/capi/error.hpp \
	src/capi/layout_object.cc \
	src/capi/layout_object.hpp \
	src/capi/layout_tables.cc \
	src/capi/layout_tables.hpp \
	src/capi/layouts.cc \
	src/capi/move.cc \
	src/capi/put_get.cc \
	src/capi/side.cc \
	src/capi/side.hpp
