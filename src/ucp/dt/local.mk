libcuda_nc_messages_la_SOURCES += \
	src/ucp/dt/address.hpp \
	src/ucp/dt/cancelled_state.cc \
	src/ucp/dt/cancelled_state.hpp \
	src/ucp/dt/copy.cc \
	src/ucp/dt/datatype.cc \
	src/ucp/dt/datatype.hpp \
	src/ucp/dt/device_packer.cc \
	src/ucp/dt/device_packer.hpp \
	src/ucp/dt/free_list.hpp \
	src/ucp/dt/gpu_side.cc \
	src/ucp/dt/gpu_side.hpp \
	src/ucp/dt/host_pipeline.cc \
	src/ucp/dt/host_pipeline.hpp \
	src/ucp/dt/message_handles.cc \
	src/ucp/dt/message_handles.hpp \
	src/ucp/dt/receive_pipeline.cc \
	src/ucp/dt/receive_pipeline.hpp \
	src/ucp/dt/request_state.cc \
	src/ucp/dt/request_state.hpp \
	src/ucp/dt/send_pipeline.cc \
	src/ucp/dt/send_pipeline.hpp \
	src/ucp/dt/shape_text.cc \
	src/ucp/dt/shape_text.hpp \
	src/ucp/dt/staging.cc \
	src/ucp/dt/staging.hpp \
	src/ucp/dt/ucp_api.cc \
	src/ucp/dt/ucp_api.hpp
