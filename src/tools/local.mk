if ENABLE_TOOLS
bin_PROGRAMS += nc_info
nc_info_SOURCES = \
	src/tools/found_libraries.cc \
	src/tools/found_libraries.hpp \
	src/tools/nc_info.cc
nc_info_CPPFLAGS = $(AM_CPPFLAGS) -DFMT_HEADER_ONLY
nc_info_LDADD = libcuda_nc_core.la
bin_PROGRAMS += nc_perftest
nc_perftest_SOURCES = \
	src/tools/perftest/catalogue.cc \
	src/tools/perftest/catalogue.hpp \
	src/tools/perftest/mover.cc \
	src/tools/perftest/mover.hpp \
	src/tools/perftest/nc_perftest.cc \
	src/tools/perftest/oracle.cc \
	src/tools/perftest/oracle.hpp \
	src/tools/perftest/pack_mode.cc \
	src/tools/perftest/pack_mode.hpp \
	src/tools/perftest/report.cc \
	src/tools/perftest/report.hpp
nc_perftest_CPPFLAGS = $(AM_CPPFLAGS) -DFMT_HEADER_ONLY
nc_perftest_LDADD = libcuda_nc_core.la
endif
