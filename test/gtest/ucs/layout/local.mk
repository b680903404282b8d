unit_tests_SOURCES += test/gtest/ucs/layout/layout_test.cc
