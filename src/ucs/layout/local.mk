libcuda_nc_core_la_SOURCES += \
	src/ucs/layout/block_storage.cc \
	src/ucs/layout/block_storage.hpp \
	src/ucs/layout/common_blocks.hpp \
	src/ucs/layout/layout.cc \
	src/ucs/layout/layout.hpp \
	src/ucs/layout/layout_builder.cc \
	src/ucs/layout/layout_fold.hpp \
	src/ucs/layout/layout_make.hpp \
	src/ucs/layout/layout_spec.cc \
	src/ucs/layout/layout_spec.hpp \
	src/ucs/layout/layout_view.hpp \
	src/ucs/layout/list_proof.hpp
