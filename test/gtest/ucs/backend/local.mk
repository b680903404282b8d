unit_tests_SOURCES += \
	test/gtest/ucs/backend/platform_test.cc \
	test/gtest/ucs/backend/sim/arena_test.cc \
	test/gtest/ucs/backend/sim/faults_test.cc \
	test/gtest/ucs/backend/sim/mover_test.cc \
	test/gtest/ucs/backend/sim/sim_fixture.hpp \
	test/gtest/ucs/backend/sim/sim_test.cc
cuda_unit_test_sources += test/gtest/ucs/backend/cuda/cuda_test.cc \
	test/gtest/ucs/backend/cuda/driver_age_test.cc \
	test/gtest/ucs/backend/cuda/sole_user_test.cc
