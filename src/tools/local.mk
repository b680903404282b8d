if ENABLE_TOOLS
bin_PROGRAMS += nc_info
nc_info_SOURCES = \
	src/tools/found_libraries.cc \
	src/tools/found_libraries.hpp \
	src/tools/nc_info.cc
nc_info_CPPFLAGS = $(AM_CPPFLAGS) -DFMT_HEADER_ONLY
nc_info_LDADD = libcuda_nc_core.la
endif
