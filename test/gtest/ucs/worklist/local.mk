unit_tests_SOURCES += test/gtest/ucs/worklist/worklist_test.cc
