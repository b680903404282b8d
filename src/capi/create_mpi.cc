// include/cuda_nc/cuda_nc.h: layouts of MPI datatypes, read by what the hooks know of MPI
// libraries.
#include <cinttypes>
#include <cstring>

#include "capi/create.hpp"
#include "capi/error.hpp"
#include "hooks/common/owner.hpp"

namespace cuda_nc::capi {
namespace {

// As an mpi_library takes it: a pointer, or a widened integer.
const void *widen(const void *datatype, size_t size) noexcept {
    if (size == sizeof(int)) {
        int number;
        std::memcpy(&number, datatype, sizeof(number));
        return reinterpret_cast<const void *>(static_cast<intptr_t>(number));
    }
    const void *pointer;
    std::memcpy(&pointer, datatype, sizeof(pointer));
    return pointer;
}

ucs_status_t create_mpi(const void *datatype, size_t size, int64_t count,
                        cuda_nc_layout_t *layout_p) {
    ucs_status_t status = check_result(layout_p);
    if (status != UCS_OK || (status = check_pointer("datatype", datatype, 1)) != UCS_OK ||
        (status = check_count("count", count)) != UCS_OK) {
        return status;
    }
    if (size != sizeof(int) && size != sizeof(void *)) {
        return fail(UCS_ERR_INVALID_PARAM, "datatype_size: no MPI has datatypes of %zu bytes",
                    size);
    }
    const char *why = "";
    const hooks::mpi_library *mpi = hooks::find_ready_library(size, &why);
    if (mpi == nullptr) {
        return fail(UCS_ERR_UNSUPPORTED, "datatype: %s", why);
    }
    const void *handle = widen(datatype, size);
    if (handle == nullptr) {
        return fail(UCS_ERR_INVALID_PARAM, "datatype: MPI_DATATYPE_NULL");
    }
    layout_ref what = mpi->element(handle);
    int64_t extent = 0;
    if (what == nullptr || !mpi->extent(handle, &extent)) {
        return fail(UCS_ERR_INVALID_PARAM, "datatype: %s %s does not say how it is laid out",
                    mpi->product(), mpi->version().c_str());
    }
    status = repeat(&what, count, extent);
    return status == UCS_OK ? finish(std::move(what), extent, layout_p) : status;
}

}  // namespace
}  // namespace cuda_nc::capi

ucs_status_t cuda_nc_layout_create_mpi(const void *datatype, size_t datatype_size, int64_t count,
                                       cuda_nc_layout_t *layout_p) {
    using namespace cuda_nc::capi;
    return guarded([&] { return create_mpi(datatype, datatype_size, count, layout_p); });
}
