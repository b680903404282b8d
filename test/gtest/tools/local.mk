# Sources of test/gtest/tools; see Makefile.am for the variables.
if ENABLE_TOOLS
unit_tests_SOURCES += \
	test/gtest/tools/applications_test.cc \
	test/gtest/tools/catalogue_test.cc \
	test/gtest/tools/compare_test.cc \
	test/gtest/tools/halo_test.cc \
	test/gtest/tools/message_test_test.cc \
	test/gtest/tools/mover_test.cc \
	test/gtest/tools/pack_layouts_test.cc \
	test/gtest/tools/progress_test.cc \
	test/gtest/tools/report_test.cc \
	test/gtest/tools/sectors_test.cc \
	test/gtest/tools/sizes_test.cc \
	test/gtest/tools/socket_test.cc \
	test/gtest/tools/thread_messenger.hpp \
	test/gtest/tools/tune_check_test.cc \
	test/gtest/tools/tune_rules_test.cc
endif
