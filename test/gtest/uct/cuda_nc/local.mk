unit_tests_SOURCES += \
	test/gtest/uct/cuda_nc/carrier/carrier_memory_test.cc \
	test/gtest/uct/cuda_nc/carrier/carrier_test.cc \
	test/gtest/uct/cuda_nc/engine/agenda_test.cc \
	test/gtest/uct/cuda_nc/engine/flush_test.cc \
	test/gtest/uct/cuda_nc/memory/address_process_test.cc \
	test/gtest/uct/cuda_nc/memory/lending_child.hpp \
	test/gtest/uct/cuda_nc/memory/ring_test.cc \
	test/gtest/uct/cuda_nc/pipe/drive_test.cc \
	test/gtest/uct/cuda_nc/pipe/parts_test.cc \
	test/gtest/uct/cuda_nc/protocol/messages_fixture.hpp \
	test/gtest/uct/cuda_nc/protocol/messages_test.cc \
	test/gtest/uct/cuda_nc/protocol/network_ends.hpp \
	test/gtest/uct/cuda_nc/protocol/network_fixture.hpp \
	test/gtest/uct/cuda_nc/protocol/pull_fixture.hpp \
	test/gtest/uct/cuda_nc/protocol/route_host_slots_test.cc \
	test/gtest/uct/cuda_nc/protocol/route_network_test.cc \
	test/gtest/uct/cuda_nc/protocol/route_pipe_test.cc \
	test/gtest/uct/cuda_nc/protocol/route_pull_sender_test.cc \
	test/gtest/uct/cuda_nc/protocol/route_pull_test.cc \
	test/gtest/uct/cuda_nc/stub_carrier.cc \
	test/gtest/uct/cuda_nc/stub_network.cc \
	test/gtest/uct/cuda_nc/stub_network.hpp \
	test/gtest/uct/cuda_nc/ucx/self_check_test.cc \
	test/gtest/uct/cuda_nc/with_setting.hpp
