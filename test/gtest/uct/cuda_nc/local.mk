unit_tests_SOURCES += test/gtest/uct/cuda_nc/carrier_test.cc
