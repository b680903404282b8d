#include "hooks/common/ucx_settings.hpp"

#include <array>
#include <atomic>
#include <vector>

#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc::hooks {
namespace {

// UCX's tables (ucs/config/parser.h), as far as they are the same in every release. A field is a
// row of words; from 1.17 on it has one more, the parser's documentation.
struct list_link {
    list_link *previous, *next;
};

struct table_entry {
    const char *name;
    const char *prefix;
    const uintptr_t *fields;
    size_t size;  // bytes of the structure that is filled
    list_link list;
    uint8_t flags;  // from 1.15 on
};

using fill_entry_f = int8_t (*)(void *values, table_entry *entry, const char *env_prefix,
                                int ignore_errors);
using fill_fields_f = int8_t (*)(void *values, const uintptr_t *fields, const char *env_prefix,
                                 const char *table_prefix, int ignore_errors);

// Each setting is a string to UCX, which takes any value; our own table checks them.
struct settings_table {
    std::vector<setting_description> settings = describe_settings();
    std::vector<uintptr_t> fields;
    std::vector<char *> values;
    table_entry entry = {};

    bool make(const ucx_instance &ucx) {
        std::vector<uintptr_t> parser;
        for (const char *symbol :
             {"ucs_config_sscanf_string", "ucs_config_sprintf_string", "ucs_config_clone_string",
              "ucs_config_release_string", "ucs_config_help_generic", "ucs_config_doc_nop"}) {
            if (parser.size() == 5 && !ucx.at_least(1, 17)) {
                break;
            }
            parser.push_back(reinterpret_cast<uintptr_t>(ucx.find(symbol)));
            if (parser.back() == 0) {
                return false;
            }
        }
        static const char type[] = "string";
        parser.push_back(reinterpret_cast<uintptr_t>(type));
        for (size_t i = 0; i < settings.size(); ++i) {
            for (const char *word :
                 {settings[i].name, settings[i].default_value, settings[i].help}) {
                fields.push_back(reinterpret_cast<uintptr_t>(word));
            }
            fields.push_back(i * sizeof(char *));  // offset of the value
            fields.insert(fields.end(), parser.begin(), parser.end());
        }
        fields.insert(fields.end(), 4 + parser.size(), 0);
        values.resize(settings.size());
        entry.name = "ucx-cuda-nc";
        entry.prefix = "CUDA_NC_";
        entry.fields = fields.data();
        entry.size = values.size() * sizeof(char *);
        return true;
    }
};

bool fill(const ucx_instance &ucx, settings_table &table) noexcept {
    void *function = ucx.find("ucs_config_parser_fill_opts");
    if (function == nullptr) {
        return false;
    }
    if (ucx.at_least(1, 15)) {
        return reinterpret_cast<fill_entry_f>(function)(table.values.data(), &table.entry, "UCX_",
                                                        1) == 0;
    }
    return reinterpret_cast<fill_fields_f>(function)(table.values.data(), table.fields.data(),
                                                     "UCX_", table.entry.prefix, 1) == 0;
}

}  // namespace

void register_settings(const ucx_instance &ucx) noexcept try {
    static std::array<std::atomic<bool>, max_ucx_instances> done;
    if (!ucx.is_known() || done[ucx.index].exchange(true)) {
        return;
    }
    auto *table = new settings_table;  // UCX uses it until the process ends
    auto *head = static_cast<list_link *>(ucx.find("ucs_config_global_list"));
    if (head == nullptr || !table->make(ucx) || !fill(ucx, *table)) {
        nc_debug("UCX's table of settings does not take ours");
        delete table;
        return;
    }
    table->entry.list = {head->previous, head};
    head->previous->next = &table->entry.list;
    head->previous = &table->entry.list;
} catch (...) {
    nc_debug("no memory to list the settings with UCX's");
}

}  // namespace cuda_nc::hooks
