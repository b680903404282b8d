if ENABLE_TOOLS
bin_PROGRAMS += nc_info
nc_info_SOURCES = \
	src/tools/explain.cc \
	src/tools/explain.hpp \
	src/tools/found_libraries.cc \
	src/tools/found_libraries.hpp \
	src/tools/nc_info.cc
nc_info_CPPFLAGS = $(AM_CPPFLAGS) -DFMT_HEADER_ONLY
nc_info_LDFLAGS = $(AM_LDFLAGS) $(product_rpath)
nc_info_LDADD = $(tools_library) $(product_library)
nc_info_DEPENDENCIES = $(tools_library) libcuda_nc.la
# What the programs and the unit tests share.
tools_library = libnc_perftest.la
noinst_LTLIBRARIES += $(tools_library)
libnc_perftest_la_SOURCES = \
	src/tools/perftest/compare/compare.cc \
	src/tools/perftest/compare/compare.hpp \
	src/tools/perftest/layouts/applications.cc \
	src/tools/perftest/layouts/applications.hpp \
	src/tools/perftest/layouts/cases.cc \
	src/tools/perftest/layouts/cases.hpp \
	src/tools/perftest/layouts/catalogue.cc \
	src/tools/perftest/layouts/catalogue.hpp \
	src/tools/perftest/layouts/sizes.cc \
	src/tools/perftest/layouts/sizes.hpp \
	src/tools/perftest/layouts/tables.hpp \
	src/tools/perftest/message/cuda_memory.cc \
	src/tools/perftest/message/cuda_memory.hpp \
	src/tools/perftest/message/exchange.cc \
	src/tools/perftest/message/exchange.hpp \
	src/tools/perftest/message/halo.cc \
	src/tools/perftest/message/halo.hpp \
	src/tools/perftest/message/halo_grid.cc \
	src/tools/perftest/message/halo_grid.hpp \
	src/tools/perftest/message/halo_reference.cc \
	src/tools/perftest/message/halo_reference.hpp \
	src/tools/perftest/message/memory.cc \
	src/tools/perftest/message/memory.hpp \
	src/tools/perftest/message/messenger.hpp \
	src/tools/perftest/message/options.cc \
	src/tools/perftest/message/options.hpp \
	src/tools/perftest/message/pairs.cc \
	src/tools/perftest/message/pairs.hpp \
	src/tools/perftest/message/plan.cc \
	src/tools/perftest/message/plan.hpp \
	src/tools/perftest/message/plugin.cc \
	src/tools/perftest/message/plugin.hpp \
	src/tools/perftest/message/point_to_point.cc \
	src/tools/perftest/message/point_to_point.hpp \
	src/tools/perftest/message/rank_buffers.cc \
	src/tools/perftest/message/rank_buffers.hpp \
	src/tools/perftest/message/report.cc \
	src/tools/perftest/message/report.hpp \
	src/tools/perftest/message/sampling.cc \
	src/tools/perftest/message/sampling.hpp \
	src/tools/perftest/message/socket.cc \
	src/tools/perftest/message/socket.hpp \
	src/tools/perftest/message/ucp_library.cc \
	src/tools/perftest/message/ucp_library.hpp \
	src/tools/perftest/message/ucp_messenger.cc \
	src/tools/perftest/message/ucp_messenger.hpp \
	src/tools/perftest/pack/layouts.cc \
	src/tools/perftest/pack/layouts.hpp \
	src/tools/perftest/pack/report.cc \
	src/tools/perftest/pack/report.hpp \
	src/tools/perftest/support/clock.hpp \
	src/tools/perftest/support/oracle.cc \
	src/tools/perftest/support/oracle.hpp \
	src/tools/perftest/support/program.cc \
	src/tools/perftest/support/program.hpp \
	src/tools/perftest/support/progress.cc \
	src/tools/perftest/support/progress.hpp \
	src/tools/perftest/support/results.cc \
	src/tools/perftest/support/results.hpp \
	src/tools/perftest/support/run_error.hpp \
	src/tools/perftest/support/sectors.cc \
	src/tools/perftest/support/sectors.hpp \
	src/tools/perftest/support/statistics.hpp \
	src/tools/perftest/support/timed_transfer.cc \
	src/tools/perftest/support/timed_transfer.hpp \
	src/tools/perftest/support/watchdog.cc \
	src/tools/perftest/support/watchdog.hpp \
	src/tools/perftest/tune/check.cc \
	src/tools/perftest/tune/check.hpp \
	src/tools/perftest/tune/points.cc \
	src/tools/perftest/tune/points.hpp \
	src/tools/perftest/tune/rule_trials.cc \
	src/tools/perftest/tune/rule_trials.hpp \
	src/tools/perftest/tune/rules.cc \
	src/tools/perftest/tune/rules.hpp \
	src/tools/perftest/tune/steps.cc \
	src/tools/perftest/tune/steps.hpp \
	src/tools/perftest/tune/tune.cc \
	src/tools/perftest/tune/tune.hpp
libnc_perftest_la_CPPFLAGS = $(AM_CPPFLAGS) -DFMT_HEADER_ONLY \
	-DCUDA_NC_UCX_LIBDIR='"$(UCX_LIBDIR)"'
bin_PROGRAMS += nc_perftest
nc_perftest_SOURCES = \
	src/tools/perftest/compare/mode.cc \
	src/tools/perftest/compare/mode.hpp \
	src/tools/perftest/message/p2p_mode.cc \
	src/tools/perftest/message/p2p_mode.hpp \
	src/tools/perftest/message/p2p_session.cc \
	src/tools/perftest/message/p2p_session.hpp \
	src/tools/perftest/nc_perftest.cc \
	src/tools/perftest/pack/mode.cc \
	src/tools/perftest/pack/mode.hpp \
	src/tools/perftest/tune/mode.cc \
	src/tools/perftest/tune/mode.hpp
nc_perftest_CPPFLAGS = $(AM_CPPFLAGS) -DFMT_HEADER_ONLY
nc_perftest_LDFLAGS = $(AM_LDFLAGS) $(product_rpath)
nc_perftest_LDADD = $(tools_library) $(product_library)
nc_perftest_DEPENDENCIES = $(tools_library) libcuda_nc.la

# nc_perftest_mpi, by an MPI's compiler: MPICXX, found by configure or given to make. For a second
# MPI: make nc_perftest_mpi-other MPI_SUFFIX=-other MPICXX=/path/to/mpicxx
mpi_sources = $(addprefix src/tools/perftest/mpi/,datatype.cc main.cc mpi_exchange.cc \
	mpi_messenger.cc)
EXTRA_DIST += src/tools/perftest/mpi/datatype.cc src/tools/perftest/mpi/datatype.hpp \
	src/tools/perftest/mpi/main.cc src/tools/perftest/mpi/mpi_exchange.cc \
	src/tools/perftest/mpi/mpi_exchange.hpp src/tools/perftest/mpi/mpi_messenger.cc \
	src/tools/perftest/mpi/mpi_messenger.hpp
mpi_objects = $(mpi_sources:.cc=.mpi$(MPI_SUFFIX).o)
mpi_program = nc_perftest_mpi$(MPI_SUFFIX)
mpi_flags = -std=c++17 $(CUDA_NC_WARNINGS) $(CUDA_NC_SANITIZE) $(CXXFLAGS)
AM_V_MPICXX = $(am__v_MPICXX_@AM_V@)
am__v_MPICXX_ = $(am__v_MPICXX_@AM_DEFAULT_V@)
am__v_MPICXX_0 = @echo "  MPICXX  " $@;
$(mpi_objects): %.mpi$(MPI_SUFFIX).o: %.cc
	@$(MKDIR_P) $(@D)
	$(AM_V_MPICXX)$(MPICXX) $(mpi_flags) $(DEFS) -DOMPI_SKIP_MPICXX=1 -I. $(AM_CPPFLAGS) \
		$(CPPFLAGS) -DFMT_HEADER_ONLY -MMD -MP -c $< -o $@
$(mpi_program): $(mpi_objects) $(tools_library) libcuda_nc.la
	$(AM_V_CXXLD)$(LIBTOOL) $(AM_V_lt) --tag=CXX --mode=link $(MPICXX) $(mpi_flags) $(LDFLAGS) \
		$(product_rpath) -o $@ $(mpi_objects) $(tools_library) $(product_library)
-include $(mpi_objects:.o=.d)
if HAVE_MPI
bin_SCRIPTS = nc_perftest_mpi
endif
endif
