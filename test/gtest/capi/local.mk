unit_tests_SOURCES += \
	test/gtest/capi/create_test.cc \
	test/gtest/capi/layout_maker.hpp \
	test/gtest/capi/layout_object_test.cc \
	test/gtest/capi/move_test.cc

cuda_unit_test_sources += test/gtest/capi/move_gpu_test.cc

ucp_tests_SOURCES += \
	test/gtest/capi/layouts_test.cc

# Fuzzing: needs clang, and -fsanitize=fuzzer-no-link in CXXFLAGS.
EXTRA_PROGRAMS += layout_fuzzer
layout_fuzzer_SOURCES = test/gtest/capi/layout_fuzzer.cc test/gtest/capi/layout_maker.hpp
layout_fuzzer_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/test/gtest
layout_fuzzer_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
layout_fuzzer_LDADD = libcuda_nc_core.la
