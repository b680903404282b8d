libcuda_nc_preload_la_SOURCES += \
	src/plugin/preload/preload.c \
	src/plugin/preload/resolve.c \
	src/plugin/preload/resolve.h \
	src/ucs/base/definer.c \
	src/ucs/base/definer.h \
	src/ucs/base/elf_tables.h

libuct_cudanc_la_SOURCES += src/plugin/module.c
