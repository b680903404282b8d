#include "hooks/open_mpi/originals.hpp"

#include <cstdlib>

#include "ucs/base/loaded_objects.hpp"
#include "ucs/base/log.hpp"

namespace cuda_nc::hooks {
namespace {

void *find_or_abort(const char *symbol) noexcept {
    void *found = find_definition(symbol);
    if (found == nullptr) {
        nc_error("%s is called, but nothing in this process defines it", symbol);
        std::abort();
    }
    return found;
}

opal_originals find_originals() noexcept {
    opal_originals found;
    found.api = open_mpi::find_loaded();
    if (found.api == nullptr) {
        find_all(find_or_abort, &found);
        return found;
    }
    static_cast<opal_functions &>(found) = found.api->originals();
    if (!found.api->is_known()) {
        nc_info(
            "Open MPI %s is newer than those that we know: what does not go as a message is "
            "left to its own convertor",
            found.api->version().c_str());
        found.api = nullptr;
    }
    return found;
}

}  // namespace

const opal_originals &opal() noexcept {
    static const opal_originals only = find_originals();
    return only;
}

}  // namespace cuda_nc::hooks
