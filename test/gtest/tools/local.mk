# Sources of test/gtest/tools; see Makefile.am for the variables.
if ENABLE_TOOLS
unit_tests_SOURCES += \
	test/gtest/tools/perftest/compare/compare_test.cc \
	test/gtest/tools/perftest/layouts/applications_test.cc \
	test/gtest/tools/perftest/layouts/catalogue_test.cc \
	test/gtest/tools/perftest/layouts/sizes_test.cc \
	test/gtest/tools/perftest/message/halo_test.cc \
	test/gtest/tools/perftest/message/report_test.cc \
	test/gtest/tools/perftest/message/point_to_point_test.cc \
	test/gtest/tools/perftest/message/socket_test.cc \
	test/gtest/tools/perftest/message/thread_messenger.hpp \
	test/gtest/tools/perftest/pack/layouts_test.cc \
	test/gtest/tools/perftest/pack/report_test.cc \
	test/gtest/tools/perftest/support/progress_test.cc \
	test/gtest/tools/perftest/support/sectors_test.cc \
	test/gtest/tools/perftest/support/statistics_test.cc \
	test/gtest/tools/perftest/support/timed_transfer_test.cc \
	test/gtest/tools/perftest/tune/check_test.cc \
	test/gtest/tools/perftest/tune/rules_test.cc
endif
