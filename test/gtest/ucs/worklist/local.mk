unit_tests_SOURCES += \
	test/gtest/ucs/worklist/table_pool_test.cc \
	test/gtest/ucs/worklist/worklist_test.cc
