#include "ucs/base/settings.hpp"

#include <cerrno>
#include <cstdlib>
#include <limits>
#include <memory>

#include "ucs/base/log.hpp"

namespace cuda_nc {
namespace {

enum class kind { boolean, number, size, text };

struct field {
    const char *name;
    const char *default_value;
    const char *choices;  // for text: "a|b|c", null for free text
    const char *help;
    kind type;
    void *(*member)(settings &);
};

#define FIELD(member_, name_, default_, choices_, kind_, help_)                                   \
    {                                                                                             \
        name_, default_, choices_, help_, kind_, [](settings &s) -> void * { return &s.member_; } \
    }

const field fields[] = {
    FIELD(enable, "ENABLE", "y", nullptr, kind::boolean,
          "Serve derived datatypes. With n the job runs as if the plugin were not there."),
    FIELD(stats, "STATS", "n", nullptr, kind::boolean,
          "Print at exit, for each layout shape, messages, bytes, the path taken, and why."),
    FIELD(trace, "TRACE", "", nullptr, kind::text,
          "File for a timeline of messages, for chrome://tracing; %p stands for the process, whose "
          "number comes before the suffix where there is no %p."),
    FIELD(gpu, "GPU", "auto", "auto|cuda|sim|none", kind::text,
          "GPU backend: auto uses CUDA where there is a GPU; sim is a simulated GPU for tests."),
    FIELD(host_engine, "HOST_ENGINE", "auto", "auto|always|never", kind::text,
          "Pack derived datatypes in host memory by this engine: auto does where it is faster, or "
          "where the MPI library's own packing is known to deliver wrong bytes."),
    FIELD(host_simd, "HOST_SIMD", "auto", "auto|avx512|avx2|sse2|scalar", kind::text,
          "Highest instruction set that the host executor may use."),
    FIELD(
        host_threads, "HOST_THREADS", "1", nullptr, kind::number,
        "Threads, the calling one included, that share packing, unpacking and copying of 4 MiB or "
        "more in host memory; no more than it has processors. 0, 1: none but itself."),
    FIELD(staging_size, "STAGING_SIZE", "256M", nullptr, kind::size,
          "Upper bound of staging memory, pinned and on GPUs, in this process."),
    FIELD(
        fragment_size, "FRAGMENT_SIZE", "2M", nullptr, kind::size,
        "Bytes that one launch packs ahead into staging; the machine's figures decide where it is "
        "not set."),
    FIELD(zero_copy, "ZERO_COPY", "auto", "auto|y|n", kind::text,
          "Let kernels access pinned host memory directly (y), or stage in GPU memory and copy "
          "(n); auto decides by the machine's figures."),
    FIELD(worklist_cache_size, "WORKLIST_CACHE_SIZE", "256M", nullptr, kind::size,
          "GPU memory, for each device, that holds work lists of irregular datatypes."),
    FIELD(max_sms, "MAX_SMS", "0", nullptr, kind::number,
          "Streaming multiprocessors that a pack kernel, and lanes that a pipe may use; 0 is no "
          "limit, "
          "but 32 for kernels on pinned memory, which the bus limits."),
    FIELD(
        transport, "TRANSPORT", "auto", "auto|y|n", kind::text,
        "Register the transport cuda_nc with UCX 1.19 to 1.22: auto does where UCX_TLS names it."),
    FIELD(carriers, "CARRIERS", "posix,tcp,self", nullptr, kind::text,
          "Transports of UCX that the transport cuda_nc may stand on."),
    FIELD(direct, "DIRECT", "y", nullptr, kind::boolean,
          "Let the transport cuda_nc move messages from GPU to GPU."),
    FIELD(direct_thresh, "DIRECT_THRESH", "1K", nullptr, kind::size,
          "Bytes of a message from which on it goes from GPU to GPU. Where it is not set, the "
          "machine's figures decide for blocking sends, and others go so at any size."),
    FIELD(pipe, "PIPE", "y", nullptr, kind::boolean,
          "Move such messages by one kernel on each GPU, clocked by each other; n: by kernels for "
          "pieces of the message, clocked by the CPUs."),
    FIELD(pull_max, "PULL_MAX", "64M", nullptr, kind::size,
          "Bytes of a message up to which one kernel of the receiver's takes it from the sender's "
          "memory, where that pays; 0: never."),
    FIELD(copy_engines, "COPY_ENGINES", "y", nullptr, kind::boolean,
          "Let a GPU's copy engines take a message from the sender's memory where it lies in rows "
          "on both sides, no other is under way, and that is quicker than a kernel."),
    FIELD(pipe_patience, "PIPE_PATIENCE", "1000", nullptr, kind::number,
          "Microseconds that such a kernel waits for the other before it leaves for a while."),
    FIELD(network_slots, "NETWORK_SLOTS", "y", nullptr, kind::boolean,
          "Let messages between hosts go from GPU to GPU too, where a carrier's network reads and "
          "writes GPU memory."),
    FIELD(profile, "PROFILE", "auto", nullptr, kind::text,
          "File with the figures of this machine, from nc_perftest tune; auto: the user's file for "
          "this host; none: usual figures for its GPUs."),
    FIELD(sim_devices, "SIM_DEVICES", "2", nullptr, kind::number, "Simulated GPUs."),
    FIELD(sim_memory, "SIM_MEMORY", "1G", nullptr, kind::size, "Memory of each simulated GPU."),
    FIELD(sim_device, "SIM_DEVICE", "0", nullptr, kind::number,
          "Simulated GPU on which cuda_nc_sim_malloc allocates."),
    FIELD(sim_delay, "SIM_DELAY", "50", nullptr, kind::number,
          "Upper bound, in microseconds, of the random delay before a simulated GPU's operation."),
    FIELD(sim_seed, "SIM_SEED", "1", nullptr, kind::number, "Seed of the simulated GPU's delays."),
    FIELD(sim_faults, "SIM_FAULTS", "", nullptr, kind::text,
          "Faults that the simulated GPU injects, e.g. alloc:3,launch:10 (see the manual)."),
};
#undef FIELD

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

bool assign(const field &f, const std::string &text, settings &target) {
    void *member = f.member(target);
    switch (f.type) {
        case kind::boolean:
            return parse_bool(text, static_cast<bool *>(member));
        case kind::size:
            return parse_size(text, static_cast<size_t *>(member));
        case kind::text:
            if (f.choices != nullptr && !is_choice(text, f.choices)) {
                return false;
            }
            *static_cast<std::string *>(member) = text;
            return true;
        case kind::number: {
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

std::string value_of(const field &f) {
    const char *text = std::getenv((std::string("UCX_CUDA_NC_") + f.name).c_str());
    return text != nullptr ? text : f.default_value;
}

// True where an item of UCX_TLS is our transport.
bool is_transport_named() {
    const char *list = std::getenv("UCX_TLS");
    return list != nullptr && *list != '^' &&
           ("," + std::string(list) + ",").find(",cuda_nc,") != std::string::npos;
}

bool is_launch_blocking() {
    const char *text = std::getenv("CUDA_LAUNCH_BLOCKING");
    return text != nullptr && *text != '\0' && *text != '0';
}

// XDG_CACHE_HOME, or what it stands for.
std::string find_cache_home() {
    const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
    if (cache != nullptr && *cache == '/') {
        return cache;
    }
    return home != nullptr && *home == '/' ? std::string(home) + "/.cache" : "";
}

bool is_set(const char *name) {
    return std::getenv((std::string("UCX_CUDA_NC_") + name).c_str()) != nullptr;
}

void load(settings &target) {
    target.cache_home = find_cache_home();
    target.fragment_size_is_set = is_set("FRAGMENT_SIZE");
    target.direct_thresh_is_set = is_set("DIRECT_THRESH");
    target.transport_is_named = is_transport_named();
    target.launches_block = is_launch_blocking();
    for (const field &f : fields) {
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

const settings &config() noexcept {
    return storage();
}

void reload_config_for_test() {
    load(storage());
}

std::vector<setting_description> describe_settings() {
    std::vector<setting_description> result;
    settings ignored;
    for (const field &f : fields) {
        const std::string text = value_of(f);
        result.push_back(
            {f.name, f.default_value, f.help, assign(f, text, ignored) ? text : f.default_value});
    }
    return result;
}

}  // namespace cuda_nc
