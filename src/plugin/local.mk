libcuda_nc_preload_la_SOURCES += \
	src/plugin/preload/preload.c \
	src/plugin/preload/resolve.c \
	src/plugin/preload/resolve.h

libuct_cudanc_la_SOURCES += src/plugin/module.c
