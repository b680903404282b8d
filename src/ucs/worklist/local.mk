libcuda_nc_core_la_SOURCES += \
	src/ucs/worklist/list_cache.cc \
	src/ucs/worklist/list_cache.hpp \
	src/ucs/worklist/table_list.cc \
	src/ucs/worklist/table_list.hpp \
	src/ucs/worklist/table_pool.cc \
	src/ucs/worklist/table_pool.hpp \
	src/ucs/worklist/upload_staging.cc \
	src/ucs/worklist/upload_staging.hpp \
	src/ucs/worklist/worklist.cc \
	src/ucs/worklist/worklist.hpp
