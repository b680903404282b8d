unit_tests_SOURCES += \
	test/gtest/ucs/exec/host/disjoint_test.cc \
	test/gtest/ucs/exec/host/hand_made_layout.hpp \
	test/gtest/ucs/exec/host/host_executor_test.cc \
	test/gtest/ucs/exec/host/range_checks.hpp \
	test/gtest/ucs/exec/host/split_test.cc \
	test/gtest/ucs/exec/host/thread_pool_test.cc \
	test/gtest/ucs/exec/host/thread_settings.hpp
