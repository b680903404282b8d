# Sources of test/gtest/ucs/model; see Makefile.am for the variables.
unit_tests_SOURCES += \
	test/gtest/ucs/model/choices_test.cc \
	test/gtest/ucs/model/predict_test.cc \
	test/gtest/ucs/model/profile_test.cc
