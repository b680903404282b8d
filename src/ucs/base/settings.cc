#include "ucs/base/settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>

#include "ucs/base/log.hpp"
#include "ucs/base/settings_table.hpp"
#include "ucs/base/watched.hpp"

namespace cuda_nc {
namespace {

bool parse_bool(const std::string &text, bool *value_p) {
    for (const char *yes : {"y", "yes", "1", "on", "true", "Y"}) {
        if (text == yes) {
            *value_p = true;
            return true;
        }
    }
    for (const char *no : {"n", "no", "0", "off", "false", "N"}) {
        if (text == no) {
            *value_p = false;
            return true;
        }
    }
    return false;
}

bool is_choice(const std::string &text, const std::string &choices) {
    return !text.empty() && text.find('|') == std::string::npos &&
           ("|" + choices + "|").find("|" + text + "|") != std::string::npos;
}

bool parse_number(const std::string &text, uint64_t limit, uint64_t *value_p) {
    if (text.empty() || text[0] == '-') {
        return false;
    }
    char *end = nullptr;
    errno = 0;
    unsigned long long value = std::strtoull(text.c_str(), &end, 10);
    if (errno != 0 || *end != '\0' || value > limit) {
        return false;
    }
    *value_p = value;
    return true;
}

bool assign(const setting_field &f, const std::string &text, settings &target) {
    void *member = f.member(target);
    switch (f.type) {
        case setting_kind::boolean:
            return parse_bool(text, static_cast<bool *>(member));
        case setting_kind::size:
            return parse_size(text, static_cast<size_t *>(member));
        case setting_kind::text:
        case setting_kind::list:
        case setting_kind::file:
            if (f.choices != nullptr && !is_choice(text, f.choices)) {
                return false;
            }
            *static_cast<std::string *>(member) = text;
            return true;
        case setting_kind::number: {
            bool wide = member == static_cast<void *>(&target.sim_seed);
            uint64_t value;
            if (!parse_number(text, wide ? UINT64_MAX : UINT32_MAX, &value)) {
                return false;
            }
            if (wide) {
                *static_cast<uint64_t *>(member) = value;
            } else {
                *static_cast<unsigned *>(member) = static_cast<unsigned>(value);
            }
            return true;
        }
    }
    return false;
}

std::string value_of(const setting_field &f) {
    const char *text = std::getenv((std::string("UCX_CUDA_NC_") + f.name).c_str());
    return text != nullptr ? text : f.default_value;
}

// UCX reads UCX_TLS, or for a program with a prefix of its own (Open MPI: MPI) UCX_MPI_TLS.
std::vector<setting_of_ucx> find_tls_lists() {
    const std::string begin = "UCX_", end = "_TLS";
    std::vector<setting_of_ucx> lists;
    for (char **entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string text = *entry;
        const size_t equals = text.find('=');
        const std::string name = text.substr(0, equals);
        if (equals != std::string::npos && name.rfind(begin, 0) == 0 &&
            name.size() >= begin.size() + end.size() - 1 &&
            name.compare(name.size() - end.size(), end.size(), end) == 0) {
            lists.push_back({name, text.substr(equals + 1)});
        }
    }
    return lists;
}

std::optional<std::string> find_visible_gpus() {
    const char *text = std::getenv("CUDA_VISIBLE_DEVICES");
    return text != nullptr ? std::optional<std::string>(text) : std::nullopt;
}

bool is_launch_blocking() {
    const char *text = std::getenv("CUDA_LAUNCH_BLOCKING");
    return text != nullptr && *text != '\0' && *text != '0';
}

// UCX finds out what kind of memory lies at an address by watching allocations, unless told not to.
bool does_ucx_watch_allocations() {
    const char *text = std::getenv("UCX_MEMTYPE_CACHE");
    std::string chosen = text != nullptr ? text : "y";
    std::transform(chosen.begin(), chosen.end(), chosen.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    bool watches = true;
    return !parse_bool(chosen, &watches) || watches;
}

// NV_SANITIZER_INJECTION_...: compute-sanitizer's; the others: of every tool.
bool is_injected() {
    if (std::getenv("CUDA_INJECTION64_PATH") != nullptr ||
        std::getenv("CUDBG_USE_LEGACY_DEBUGGER") != nullptr) {
        return true;
    }
    for (char **entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        if (std::string(*entry).rfind("NV_SANITIZER", 0) == 0) {
            return true;
        }
    }
    return false;
}

// The process that traces this one, which a debugger does.
bool is_traced() {
    std::ifstream status("/proc/self/status");
    const std::string wanted = "TracerPid:";
    for (std::string line; std::getline(status, line);) {
        if (line.rfind(wanted, 0) == 0) {
            return std::strtol(line.c_str() + wanted.size(), nullptr, 10) != 0;
        }
    }
    return false;
}

// Of this job on this machine, as MPICH's launcher says; 0: nobody said.
unsigned find_local_processes() {
    const char *text = std::getenv("MPI_LOCALNRANKS");
    return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : 0;
}

// XDG_CACHE_HOME, or what it stands for.
std::string find_cache_home() {
    const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
    if (cache != nullptr && *cache == '/') {
        return cache;
    }
    return home != nullptr && *home == '/' ? std::string(home) + "/.cache" : "";
}

// What a value looks like, in words.
std::string type_of(const setting_field &f) {
    switch (f.type) {
        case setting_kind::boolean:
            return "y, n";
        case setting_kind::number:
            return "number";
        case setting_kind::size:
            return "size";
        case setting_kind::list:
            return "list";
        case setting_kind::file:
            return "file";
        case setting_kind::text:
            break;
    }
    std::string words;
    for (const char *at = f.choices; *at != '\0'; ++at) {
        words += *at == '|' ? ", " : std::string(1, *at);
    }
    return words;
}

bool is_set(const char *name) {
    return std::getenv((std::string("UCX_CUDA_NC_") + name).c_str()) != nullptr;
}

void load(settings &target) {
    target.cache_home = find_cache_home();
    target.local_processes = find_local_processes();
    target.fragment_size_is_set = is_set("FRAGMENT_SIZE");
    target.direct_thresh_is_set = is_set("DIRECT_THRESH");
    target.tls_lists = find_tls_lists();
    target.visible_gpus = find_visible_gpus();
    target.launches_block = is_launch_blocking();
    target.watches_allocations = does_ucx_watch_allocations();
    for (const setting_field &f : settings_table) {
        assign(f, f.default_value, target);
        std::string text = value_of(f);
        if (!assign(f, text, target)) {
            nc_warn("UCX_CUDA_NC_%s=%s cannot be read%s%s, the default %s is used", f.name,
                    text.c_str(), f.choices != nullptr ? "; choose one of " : "",
                    f.choices != nullptr ? f.choices : "", f.default_value);
        }
    }
}

settings &storage() {
    static settings *only = [] {
        auto *made = new settings;
        load(*made);
        return made;  // read during exit, never destroyed
    }();
    return *only;
}

}  // namespace

bool parse_size(const std::string &text, size_t *size_p) noexcept {
    if (text == "inf") {
        *size_p = std::numeric_limits<size_t>::max();
        return true;
    }
    if (text.empty() || text[0] < '0' || text[0] > '9') {
        return false;
    }
    char *end = nullptr;
    errno = 0;
    unsigned long long value = std::strtoull(text.c_str(), &end, 10);
    unsigned shift = 0;
    switch (*end) {
        case 'k':
        case 'K':
            shift = 10;
            break;
        case 'm':
        case 'M':
            shift = 20;
            break;
        case 'g':
        case 'G':
            shift = 30;
            break;
        case 't':
        case 'T':
            shift = 40;
            break;
        default:
            break;
    }
    end += shift != 0;
    end += *end == 'b' || *end == 'B';
    if (errno != 0 || *end != '\0' || (value << shift) >> shift != value) {
        return false;
    }
    *size_p = value << shift;
    return true;
}

bool is_watched() noexcept try {
    static const bool watched = is_injected() || is_traced();
    return watched;
} catch (...) {
    return true;
}

const settings &config() noexcept {
    return storage();
}

void reload_config_for_test() {
    load(storage());
}

std::vector<setting_description> describe_settings() {
    std::vector<setting_description> result;
    settings ignored;
    for (const setting_field &f : settings_table) {
        const std::string text = value_of(f);
        result.push_back({f.name, f.default_value, f.help,
                          assign(f, text, ignored) ? text : f.default_value, f.group, type_of(f)});
    }
    return result;
}

}  // namespace cuda_nc
