# A program of its own: fakes of UCP and of Open MPI stand in its process.
if HAVE_GTEST
unit_test_programs += hooks_tests
check_PROGRAMS += hooks_probe
endif
hooks_tests_SOURCES = \
	src/plugin/preload/resolve.c \
	test/gtest/hooks/common/datatype_ops_test.cc \
	test/gtest/hooks/common/gathered_receive_test.cc \
	test/gtest/hooks/common/library_stub.hpp \
	test/gtest/hooks/common/owner_test.cc \
	test/gtest/hooks/common/policy_test.cc \
	test/gtest/hooks/common/request_cancel_test.cc \
	test/gtest/hooks/common/sends_test.cc \
	test/gtest/hooks/common/type_record_test.cc \
	test/gtest/hooks/common/two_ucx_test.cc \
	test/gtest/hooks/common/watched_types_test.cc \
	test/gtest/hooks/common/workers_test.cc \
	test/gtest/hooks/fakes.cc \
	test/gtest/hooks/fakes.hpp \
	test/gtest/hooks/mpich/type_contents_test.cc \
	test/gtest/hooks/open_mpi/convertor_calls.hpp \
	test/gtest/hooks/open_mpi/convertor_host_test.cc \
	test/gtest/hooks/open_mpi/convertor_map_test.cc \
	test/gtest/hooks/open_mpi/convertor_test.cc \
	test/gtest/hooks/open_mpi/datatype_words_test.cc \
	test/gtest/hooks/open_mpi/layout_bytes.hpp \
	test/gtest/hooks/open_mpi/open_mpi_test.cc \
	test/gtest/hooks/open_mpi/scratch_convertor_test.cc \
	test/gtest/hooks/open_mpi/unknown_memory_test.cc \
	test/gtest/hooks/process.cc \
	test/gtest/hooks/process.hpp \
	test/gtest/hooks/two_ucx.hpp \
	test/gtest/plugin/module_test.cc \
	test/gtest/plugin/preload/preload_test.cc \
	test/gtest/plugin/probe.hpp \
	test/gtest/ucs/base/elf_walker_test.cc \
	test/gtest/ucs/base/loaded_objects_test.cc \
	test/gtest/ucs/base/ucx_instance_test.cc

# Inside a real UCX.
ucp_tests_SOURCES += \
	test/gtest/hooks/common/contiguous_test.cc \
	test/gtest/hooks/common/iov_message_test.cc

hooks_tests_CPPFLAGS = $(unit_tests_CPPFLAGS) -I$(srcdir)/test/gtest/hooks/fake \
	-DBUILD_DIRECTORY='"$(abs_builddir)"'
hooks_tests_LDADD = libcuda_nc_core.la $(GTEST_LIBS)
hooks_tests_LDFLAGS = $(AM_LDFLAGS)
EXTRA_hooks_tests_DEPENDENCIES = $(hooks_fakes) hooks_probe$(EXEEXT) libcuda_nc.la \
	libcuda_nc_preload.la libuct_cudanc.la

if ENABLE_TOOLS
hooks_tests_SOURCES += test/gtest/tools/nc_info_test.cc
EXTRA_hooks_tests_DEPENDENCIES += nc_info$(EXEEXT)
endif

# Loads what it is told, as a program with a plug-in does, and says who packed.
hooks_probe_SOURCES = test/gtest/hooks/probe.c test/gtest/hooks/fake/fake_open_mpi.h
hooks_probe_CPPFLAGS = -I$(srcdir)/src -I$(srcdir)/test/gtest/hooks/fake
hooks_probe_LDADD = -ldl

# Plain shared objects with exact names and link options: not a business of libtool.
fake_sources = test/gtest/hooks/fake
fake_directory = test/gtest/hooks/fakes
fake_link = $(AM_V_CCLD)mkdir -p $(fake_directory) && \
	$(CC) $(CFLAGS) -w -shared -fPIC -o $@ -I$(srcdir)/$(fake_sources) -Wl,-rpath,'$$ORIGIN'
hooks_fakes = \
	$(fake_directory)/libucp_fake.so \
	$(fake_directory)/libfake_open_mpi.so \
	$(fake_directory)/libfake_mpich.so \
	$(fake_directory)/libfake_unknown_mpi.so \
	$(fake_directory)/libfake_user.so \
	$(fake_directory)/libucp_second.so \
	$(fake_directory)/libfirst_user.so \
	$(fake_directory)/libsecond_user.so \
	$(fake_directory)/libwalk_original.so \
	$(fake_directory)/libwalk_lazy.so \
	$(fake_directory)/libwalk_now.so \
	$(fake_directory)/libwalk_noplt.so \
	$(fake_directory)/libuct_cudanc.so \
	$(fake_directory)/libuct_cuda-12ab.so
EXTRA_DIST += \
	$(fake_sources)/fake_libraries.c \
	$(fake_sources)/fake_open_mpi.c \
	$(fake_sources)/fake_ucp.c \
	$(fake_sources)/fake_ucx_user.c \
	$(fake_sources)/walk_original.c \
	$(fake_sources)/walked.c
CLEANFILES += $(hooks_fakes)

$(fake_directory)/libucp_fake.so: $(fake_sources)/fake_ucp.c
	$(fake_link) $(srcdir)/$(fake_sources)/fake_ucp.c
$(fake_directory)/libucp_second.so: $(fake_sources)/fake_ucp.c
	$(fake_link) -DFAKE_MINOR=19 $(srcdir)/$(fake_sources)/fake_ucp.c
$(fake_directory)/libfirst_user.so: $(fake_sources)/fake_ucx_user.c $(fake_directory)/libucp_fake.so
	$(fake_link) -fplt -Wl,-z,lazy $(srcdir)/$(fake_sources)/fake_ucx_user.c \
		$(fake_directory)/libucp_fake.so
$(fake_directory)/libsecond_user.so: $(fake_sources)/fake_ucx_user.c $(fake_directory)/libucp_second.so
	$(fake_link) -fplt -Wl,-z,lazy $(srcdir)/$(fake_sources)/fake_ucx_user.c \
		$(fake_directory)/libucp_second.so
$(fake_directory)/libfake_open_mpi.so: $(fake_sources)/fake_open_mpi.c $(fake_sources)/fake_open_mpi.h \
		$(fake_directory)/libucp_fake.so
	$(fake_link) $(srcdir)/$(fake_sources)/fake_open_mpi.c $(fake_directory)/libucp_fake.so \
		-Wl,-soname,libfake_open_mpi.so
$(fake_directory)/libfake_mpich.so: $(fake_sources)/fake_libraries.c
	$(fake_link) -DAN_MPICH $(srcdir)/$(fake_sources)/fake_libraries.c
$(fake_directory)/libfake_unknown_mpi.so: $(fake_sources)/fake_libraries.c
	$(fake_link) -DAN_UNKNOWN_MPI $(srcdir)/$(fake_sources)/fake_libraries.c
$(fake_directory)/libfake_user.so: $(fake_sources)/fake_libraries.c $(fake_directory)/libfake_open_mpi.so
	$(fake_link) -DUSES_OPEN_MPI $(srcdir)/$(fake_sources)/fake_libraries.c \
		$(fake_directory)/libfake_open_mpi.so
$(fake_directory)/libwalk_original.so: $(fake_sources)/walk_original.c
	$(fake_link) $(srcdir)/$(fake_sources)/walk_original.c -Wl,-soname,libwalk_original.so
$(fake_directory)/libwalk_lazy.so: $(fake_sources)/walked.c $(fake_directory)/libwalk_original.so
	$(fake_link) -fplt -Wl,-z,lazy $(srcdir)/$(fake_sources)/walked.c \
		$(fake_directory)/libwalk_original.so
$(fake_directory)/libwalk_now.so: $(fake_sources)/walked.c $(fake_directory)/libwalk_original.so
	$(fake_link) -fplt -Wl,-z,now -Wl,-z,relro $(srcdir)/$(fake_sources)/walked.c \
		$(fake_directory)/libwalk_original.so
$(fake_directory)/libwalk_noplt.so: $(fake_sources)/walked.c $(fake_directory)/libwalk_original.so
	$(fake_link) -fno-plt $(srcdir)/$(fake_sources)/walked.c $(fake_directory)/libwalk_original.so
# Of these only the names count.
$(fake_directory)/libuct_cudanc.so $(fake_directory)/libuct_cuda-12ab.so: $(fake_sources)/walk_original.c
	$(fake_link) $(srcdir)/$(fake_sources)/walk_original.c
