if ENABLE_TOOLS
bin_PROGRAMS += nc_info
nc_info_SOURCES = \
	src/tools/explain.cc \
	src/tools/explain.hpp \
	src/tools/found_libraries.cc \
	src/tools/found_libraries.hpp \
	src/tools/nc_info.cc
nc_info_CPPFLAGS = $(AM_CPPFLAGS) -DFMT_HEADER_ONLY
nc_info_LDADD = $(tools_library) libcuda_nc_core.la
# What the programs and the unit tests share.
tools_library = libnc_perftest.la
noinst_LTLIBRARIES += $(tools_library)
libnc_perftest_la_SOURCES = \
	src/tools/perftest/applications.cc \
	src/tools/perftest/applications.hpp \
	src/tools/perftest/catalogue.cc \
	src/tools/perftest/catalogue.hpp \
	src/tools/perftest/compare.cc \
	src/tools/perftest/compare.hpp \
	src/tools/perftest/halo_grid.cc \
	src/tools/perftest/halo_grid.hpp \
	src/tools/perftest/halo_test.cc \
	src/tools/perftest/halo_test.hpp \
	src/tools/perftest/message_memory.cc \
	src/tools/perftest/message_memory.hpp \
	src/tools/perftest/message_options.cc \
	src/tools/perftest/message_options.hpp \
	src/tools/perftest/message_plan.cc \
	src/tools/perftest/message_plan.hpp \
	src/tools/perftest/message_report.cc \
	src/tools/perftest/message_report.hpp \
	src/tools/perftest/message_side.cc \
	src/tools/perftest/message_side.hpp \
	src/tools/perftest/message_test.cc \
	src/tools/perftest/message_test.hpp \
	src/tools/perftest/messenger.hpp \
	src/tools/perftest/mover.cc \
	src/tools/perftest/mover.hpp \
	src/tools/perftest/oracle.cc \
	src/tools/perftest/oracle.hpp \
	src/tools/perftest/pack_layouts.cc \
	src/tools/perftest/pack_layouts.hpp \
	src/tools/perftest/pairs_test.cc \
	src/tools/perftest/pairs_test.hpp \
	src/tools/perftest/product_library.cc \
	src/tools/perftest/product_library.hpp \
	src/tools/perftest/program.cc \
	src/tools/perftest/program.hpp \
	src/tools/perftest/progress.cc \
	src/tools/perftest/progress.hpp \
	src/tools/perftest/report.cc \
	src/tools/perftest/report.hpp \
	src/tools/perftest/rule_trials.cc \
	src/tools/perftest/rule_trials.hpp \
	src/tools/perftest/run_error.hpp \
	src/tools/perftest/sampling.cc \
	src/tools/perftest/sampling.hpp \
	src/tools/perftest/sectors.cc \
	src/tools/perftest/sectors.hpp \
	src/tools/perftest/sizes.cc \
	src/tools/perftest/sizes.hpp \
	src/tools/perftest/socket.cc \
	src/tools/perftest/socket.hpp \
	src/tools/perftest/tune.cc \
	src/tools/perftest/tune.hpp \
	src/tools/perftest/tune_check.cc \
	src/tools/perftest/tune_check.hpp \
	src/tools/perftest/tune_points.cc \
	src/tools/perftest/tune_points.hpp \
	src/tools/perftest/tune_rules.cc \
	src/tools/perftest/tune_rules.hpp \
	src/tools/perftest/tune_steps.cc \
	src/tools/perftest/tune_steps.hpp \
	src/tools/perftest/ucp_library.cc \
	src/tools/perftest/ucp_library.hpp \
	src/tools/perftest/ucp_messenger.cc \
	src/tools/perftest/ucp_messenger.hpp \
	src/tools/perftest/watchdog.cc \
	src/tools/perftest/watchdog.hpp
libnc_perftest_la_CPPFLAGS = $(AM_CPPFLAGS) -DFMT_HEADER_ONLY \
	-DCUDA_NC_LIBDIR='"$(libdir)"' -DCUDA_NC_UCX_LIBDIR='"$(UCX_LIBDIR)"'
bin_PROGRAMS += nc_perftest
nc_perftest_SOURCES = \
	src/tools/perftest/compare_mode.cc \
	src/tools/perftest/compare_mode.hpp \
	src/tools/perftest/nc_perftest.cc \
	src/tools/perftest/p2p_mode.cc \
	src/tools/perftest/p2p_mode.hpp \
	src/tools/perftest/p2p_session.cc \
	src/tools/perftest/p2p_session.hpp \
	src/tools/perftest/pack_mode.cc \
	src/tools/perftest/pack_mode.hpp \
	src/tools/perftest/tune_mode.cc \
	src/tools/perftest/tune_mode.hpp
nc_perftest_CPPFLAGS = $(AM_CPPFLAGS) -DFMT_HEADER_ONLY
nc_perftest_LDADD = $(tools_library) libcuda_nc_core.la

# nc_perftest_mpi, by an MPI's compiler: MPICXX, found by configure or given to make. For a second
# MPI: make nc_perftest_mpi-other MPI_SUFFIX=-other MPICXX=/path/to/mpicxx
mpi_sources = src/tools/perftest/mpi/main.cc src/tools/perftest/mpi/mpi_messenger.cc
EXTRA_DIST += $(mpi_sources) src/tools/perftest/mpi/mpi_messenger.hpp
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
$(mpi_program): $(mpi_objects) $(tools_library) libcuda_nc_core.la
	$(AM_V_CXXLD)$(LIBTOOL) $(AM_V_lt) --tag=CXX --mode=link $(MPICXX) $(mpi_flags) $(LDFLAGS) \
		-o $@ $(mpi_objects) $(tools_library) libcuda_nc_core.la
-include $(mpi_objects:.o=.d)
if HAVE_MPI
bin_SCRIPTS = nc_perftest_mpi
endif
endif
