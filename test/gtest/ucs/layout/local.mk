unit_tests_SOURCES += test/gtest/ucs/layout/layout_spec_test.cc test/gtest/ucs/layout/layout_test.cc
