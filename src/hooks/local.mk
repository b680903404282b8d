libcuda_nc_core_la_SOURCES += \
	src/hooks/convertor.cc \
	src/hooks/convertor.hpp \
	src/hooks/convertor_host.cc \
	src/hooks/convertor_host.hpp \
	src/hooks/convertor_map.cc \
	src/hooks/convertor_map.hpp \
	src/hooks/convertor_move.cc \
	src/hooks/convertor_move.hpp \
	src/hooks/convertor_parts.hpp \
	src/hooks/convertor_tracker.cc \
	src/hooks/convertor_tracker.hpp \
	src/hooks/datatype_ops.cc \
	src/hooks/datatype_ops.hpp \
	src/hooks/gpu_presence.hpp \
	src/hooks/interpose.cc \
	src/hooks/interpose.h \
	src/hooks/message_ops.cc \
	src/hooks/message_ops.hpp \
	src/hooks/open_mpi.cc \
	src/hooks/open_mpi.hpp \
	src/hooks/owner.cc \
	src/hooks/owner.hpp \
	src/hooks/policy.cc \
	src/hooks/tag_send.cc \
	src/hooks/tag_send.hpp \
	src/hooks/policy.hpp \
	src/hooks/type_record.cc \
	src/hooks/type_record.hpp \
	src/hooks/ucp_api.cc \
	src/hooks/ucp_api.hpp \
	src/hooks/ucx_settings.cc \
	src/hooks/ucx_settings.hpp \
	src/hooks/watched_types.cc \
	src/hooks/watched_types.hpp

libcuda_nc_preload_la_SOURCES += \
	src/hooks/preload/preload.c \
	src/hooks/preload/resolve.c \
	src/hooks/preload/resolve.h
