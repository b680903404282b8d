// include/cuda_nc/cuda_nc.h, all but the simulated GPU.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "cuda_nc/cuda_nc.h"

#include <new>
#include <utility>

#include "ucp/dt/datatype.hpp"
#include "ucs/layout/layout.hpp"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

namespace {

cuda_nc::layout_ref make_layout(const cuda_nc_block_t *blocks, size_t num_blocks) {
    cuda_nc::layout_builder builder;
    for (size_t i = 0; i < num_blocks; ++i) {
        builder.append(blocks[i].displacement, blocks[i].length);
    }
    return builder.finish();
}

}  // namespace

extern "C" const char *cuda_nc_version(void) {
    return PACKAGE_VERSION;
}

extern "C" ucs_status_t cuda_nc_dt_create(const cuda_nc_block_t *blocks, size_t num_blocks,
                                          ptrdiff_t extent, ucp_datatype_t *datatype_p) {
    if ((blocks == nullptr && num_blocks != 0) || datatype_p == nullptr) {
        return UCS_ERR_INVALID_PARAM;
    }
    try {
        cuda_nc::layout_ref element = make_layout(blocks, num_blocks);
        return element != nullptr ? cuda_nc::dt::create(std::move(element), extent, datatype_p,
                                                        __builtin_return_address(0))
                                  : UCS_ERR_INVALID_PARAM;
    } catch (const std::bad_alloc &) {
        return UCS_ERR_NO_MEMORY;
    } catch (...) {
        return UCS_ERR_IO_ERROR;
    }
}

extern "C" void cuda_nc_dt_destroy(ucp_datatype_t datatype) {
    cuda_nc::dt::destroy(datatype);
}
