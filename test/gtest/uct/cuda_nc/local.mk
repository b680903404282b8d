unit_tests_SOURCES += \
	test/gtest/uct/cuda_nc/carrier_memory_test.cc \
	test/gtest/uct/cuda_nc/carrier_test.cc \
	test/gtest/uct/cuda_nc/flush_test.cc \
	test/gtest/uct/cuda_nc/host_slots_test.cc \
	test/gtest/uct/cuda_nc/lending_child.hpp \
	test/gtest/uct/cuda_nc/network_ends.hpp \
	test/gtest/uct/cuda_nc/network_fixture.hpp \
	test/gtest/uct/cuda_nc/network_test.cc \
	test/gtest/uct/cuda_nc/pipe_drive_test.cc \
	test/gtest/uct/cuda_nc/pipe_parts_test.cc \
	test/gtest/uct/cuda_nc/pipe_traffic_test.cc \
	test/gtest/uct/cuda_nc/pull_fixture.hpp \
	test/gtest/uct/cuda_nc/pull_sender_test.cc \
	test/gtest/uct/cuda_nc/pull_test.cc \
	test/gtest/uct/cuda_nc/ring_test.cc \
	test/gtest/uct/cuda_nc/self_check_test.cc \
	test/gtest/uct/cuda_nc/stub_carrier.cc \
	test/gtest/uct/cuda_nc/stub_network.cc \
	test/gtest/uct/cuda_nc/stub_network.hpp \
	test/gtest/uct/cuda_nc/traffic_fixture.hpp \
	test/gtest/uct/cuda_nc/traffic_test.cc \
	test/gtest/uct/cuda_nc/with_setting.hpp
