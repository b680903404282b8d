# Sources of test/gtest/ucs/gpu; see Makefile.am for the variables.
unit_tests_SOURCES += \
	test/gtest/ucs/gpu/arrival_rhythm_test.cc \
	test/gtest/ucs/gpu/box_test.cc \
	test/gtest/ucs/gpu/child_process.cc \
	test/gtest/ucs/gpu/child_process.hpp \
	test/gtest/ucs/gpu/device_test.cc \
	test/gtest/ucs/gpu/gpu_fixture.hpp \
	test/gtest/ucs/gpu/ipc_test.cc \
	test/gtest/ucs/gpu/given_orders_test.cc \
	test/gtest/ucs/gpu/mover_desk_test.cc \
	test/gtest/ucs/gpu/mover_stay_test.cc \
	test/gtest/ucs/gpu/mover_test.cc \
	test/gtest/ucs/gpu/order_ring_test.cc \
	test/gtest/ucs/gpu/known_memory_test.cc \
	test/gtest/ucs/gpu/launch_test.cc \
	test/gtest/ucs/gpu/pace_trial_test.cc \
	test/gtest/ucs/gpu/pair_list_test.cc \
	test/gtest/ucs/gpu/pipe_test.cc \
	test/gtest/ucs/gpu/random_layouts.hpp \
	test/gtest/ucs/gpu/random_pairs.hpp \
	test/gtest/ucs/gpu/shared_memory_test.cc \
	test/gtest/ucs/gpu/span_test.cc
