# Sources of test/gtest/property; see Makefile.am for the variables.
unit_tests_SOURCES += \
	test/gtest/property/random_layouts_test.cc \
	test/gtest/property/random_type.cc \
	test/gtest/property/random_type.hpp
