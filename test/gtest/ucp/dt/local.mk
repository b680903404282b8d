unit_tests_SOURCES += \
	test/gtest/ucp/dt/copy_test.cc \
	test/gtest/ucp/dt/device_packer_test.cc \
	test/gtest/ucp/dt/fault_test.cc \
	test/gtest/ucp/dt/free_list_test.cc \
	test/gtest/ucp/dt/known_overlaps_test.cc \
	test/gtest/ucp/dt/message.hpp \
	test/gtest/ucp/dt/message_handles_test.cc \
	test/gtest/ucp/dt/oracle.hpp \
	test/gtest/ucp/dt/packed_move_test.cc \
	test/gtest/ucp/dt/request_state_test.cc \
	test/gtest/ucp/dt/settings_guard.hpp \
	test/gtest/ucp/dt/staging_test.cc

ucp_tests_SOURCES += \
	test/gtest/ucp/dt/aborted_sends_test.cc \
	test/gtest/ucp/dt/cancel_test.cc \
	test/gtest/ucp/dt/datatype_test.cc \
	test/gtest/ucp/dt/iov_type_test.cc \
	test/gtest/ucp/dt/oracle.hpp \
	test/gtest/ucp/dt/settings_guard.hpp \
	test/gtest/ucp/dt/ucx_main.cc \
	test/gtest/ucp/dt/ucx_pair.hpp
