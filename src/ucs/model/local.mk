# Sources of src/ucs/model; see Makefile.am for the variables.
libcuda_nc_core_la_SOURCES += \
	src/ucs/model/choices.cc \
	src/ucs/model/choices.hpp \
	src/ucs/model/defaults.cc \
	src/ucs/model/predict.cc \
	src/ucs/model/predict.hpp \
	src/ucs/model/profile.hpp \
	src/ucs/model/profile_file.cc \
	src/ucs/model/profile_file.hpp \
	src/ucs/model/rate.cc
