unit_tests_SOURCES += \
	test/gtest/ucs/exec/kernels/emulate.hpp \
	test/gtest/ucs/exec/kernels/kernels_test.cc \
	test/gtest/ucs/exec/kernels/move/pairs_test.cc \
	test/gtest/ucs/exec/kernels/plan/order_plan_test.cc \
	test/gtest/ucs/exec/kernels/plan/order_set_test.cc \
	test/gtest/ucs/exec/kernels/plan/pair_plan_test.cc \
	test/gtest/ucs/exec/kernels/plan/pipe_plan_test.cc \
	test/gtest/ucs/exec/kernels/plan/policy_test.cc \
	test/gtest/ucs/exec/kernels/random_case.hpp \
	test/gtest/ucs/exec/kernels/watched_buffers.hpp

cuda_unit_test_sources += test/gtest/ucs/exec/kernels/kernels_gpu_test.cc \
	test/gtest/ucs/exec/kernels/move/pairs_gpu_test.cc
