libuct_cudanc_la_SOURCES += src/uct/cuda_nc/module.c
