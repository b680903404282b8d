// Open MPI's own definitions of the functions that the hooks replace.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "hooks/interposed_symbols.h"

namespace cuda_nc::hooks {

// Of the convertor's functions, pack and unpack return 1 when the message is complete, 0 where more
// is to come, and -1 on an error; the others 0, or an error.
struct opal_functions {
#define MEMBER(result, name, library, replacement, parameters, arguments) \
    result(*name) parameters = nullptr;
    CUDA_NC_OPAL_SYMBOLS(MEMBER)
#undef MEMBER
};

using prepare_f = decltype(opal_functions::opal_convertor_prepare_for_send);
using move_f = decltype(opal_functions::opal_convertor_pack);

// Looks all of them up by `find(symbol)`, which returns an address or null. False where one is
// missing.
template <typename function>
bool find_all(function find, opal_functions *found_p) {
    bool all = true;
#define FIND(result, name, library, replacement, parameters, arguments)     \
    found_p->name = reinterpret_cast<decltype(found_p->name)>(find(#name)); \
    all = all && found_p->name != nullptr;
    CUDA_NC_OPAL_SYMBOLS(FIND)
#undef FIND
    return all;
}

}  // namespace cuda_nc::hooks
