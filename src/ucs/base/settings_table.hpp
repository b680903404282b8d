// The table of settings: one row is all that the parser, `ucx_info -c -f`, `nc_info --settings` and
// docs/manual/settings.md know of a setting. A new setting is a member of `settings` and a row
// here.
#pragma once

#include "ucs/base/settings.hpp"

namespace cuda_nc {

enum class setting_kind {
    boolean,
    number,
    size,  // parse_size()
    text,  // one of `choices`
    list,  // free text
    file,  // free text
};

struct setting_field {
    const char *group;
    const char *name;  // without the prefix UCX_CUDA_NC_
    const char *default_value;
    const char *choices;  // for text: "a|b|c"; else null
    // A sentence for users: what it does, the unit, and what special values mean.
    const char *help;
    setting_kind type;
    void *(*member)(settings &);
};

constexpr unsigned num_settings = 36;  // the compiler says where it is wrong
extern const setting_field settings_table[num_settings];

}  // namespace cuda_nc
