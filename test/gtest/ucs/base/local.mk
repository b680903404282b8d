# Sources of test/gtest/ucs/base; see Makefile.am for the variables.
unit_tests_SOURCES += \
	test/gtest/ucs/base/bits_test.cc \
	test/gtest/ucs/base/fast_divide_test.cc \
	test/gtest/ucs/base/number_map_test.cc \
	test/gtest/ucs/base/settings_test.cc \
	test/gtest/ucs/base/shared_descriptors_test.cc \
	test/gtest/ucs/base/statistics_test.cc \
	test/gtest/ucs/base/tick_clock_test.cc \
	test/gtest/ucs/base/trace_test.cc \
	test/gtest/ucs/base/watched_test.cc
if HAVE_NVTX
unit_tests_SOURCES += test/gtest/ucs/base/nvtx_test.cc
endif

# Inside a real UCX.
ucp_tests_SOURCES += test/gtest/ucs/base/log_test.cc
