unit_tests_SOURCES += \
	test/gtest/ucs/exec/host/disjoint_test.cc \
	test/gtest/ucs/exec/host/hand_made_layout.hpp \
	test/gtest/ucs/exec/host/host_executor_test.cc
