libcuda_nc_core_la_SOURCES += \
	src/hooks/common/datatype_ops.cc \
	src/hooks/common/datatype_ops.hpp \
	src/hooks/common/gpu_presence.hpp \
	src/hooks/common/interpose.cc \
	src/hooks/common/interpose.h \
	src/hooks/common/message_ops.cc \
	src/hooks/common/message_ops.hpp \
	src/hooks/common/owner.cc \
	src/hooks/common/owner.hpp \
	src/hooks/common/policy.cc \
	src/hooks/common/policy.hpp \
	src/hooks/common/tag_send.cc \
	src/hooks/common/tag_send.hpp \
	src/hooks/common/type_record.cc \
	src/hooks/common/type_record.hpp \
	src/hooks/common/ucp_api.cc \
	src/hooks/common/ucp_api.hpp \
	src/hooks/common/ucx_settings.cc \
	src/hooks/common/ucx_settings.hpp \
	src/hooks/open_mpi/convertor.cc \
	src/hooks/open_mpi/convertor.hpp \
	src/hooks/open_mpi/convertor_host.cc \
	src/hooks/open_mpi/convertor_host.hpp \
	src/hooks/open_mpi/convertor_map.cc \
	src/hooks/open_mpi/convertor_map.hpp \
	src/hooks/open_mpi/convertor_move.cc \
	src/hooks/open_mpi/convertor_move.hpp \
	src/hooks/open_mpi/convertor_parts.hpp \
	src/hooks/open_mpi/convertor_tracker.cc \
	src/hooks/open_mpi/convertor_tracker.hpp \
	src/hooks/open_mpi/open_mpi.cc \
	src/hooks/open_mpi/open_mpi.hpp \
	src/hooks/open_mpi/watched_types.cc \
	src/hooks/open_mpi/watched_types.hpp

libcuda_nc_preload_la_SOURCES +=
