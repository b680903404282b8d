// Every setting of the product; settings_table.cc has the table of them. Read once from the
// environment, prefix UCX_CUDA_NC_; nothing else in the product reads the environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cuda_nc {

struct setting_of_ucx {
    std::string name, value;
};

struct settings {
    bool enable = true;
    bool stats = false;
    std::string trace;                  // file of a timeline; empty: none
    std::string gpu;                    // auto, cuda, sim, none
    std::string host_engine;            // auto, always, never
    std::string host_simd;              // auto, avx512, avx2, sse2, scalar
    unsigned host_threads = 0;          // that share a long call in host memory; 0, 1: no others
    size_t staging_size = 0;            // bytes of pinned and GPU staging, at most, in a process
    size_t fragment_size = 0;           // bytes packed ahead by one launch
    std::string zero_copy;              // auto, y, n
    size_t worklist_cache_size = 0;     // bytes of GPU memory a device
    unsigned worklist_cache_lists = 0;  // a device
    unsigned max_sms = 0;               // 0: no limit
    std::string transport;              // auto, y, n
    std::string carriers;               // transports of UCX, separated by commas
    bool direct = false;                // the transport moves direct messages
    bool one_sided = false;             // the transport serves puts and gets between GPUs
    bool iov = false;                   // lists of buffers in GPU memory are messages of ours
    std::string contiguous;             // messages of contiguous GPU memory are ours: auto, y, n
    size_t direct_thresh = 0;           // bytes of the smallest direct message
    bool pipe = false;                  // they may go by pulls and pipes
    bool network_slots = false;         // they go to other hosts, where a carrier can
    bool copy_engines = false;          // pulls of rows may go by copy engines
    size_t pull_max = 0;                // bytes of the largest message that is pulled
    unsigned pipe_patience = 0;         // microseconds that a pipe's kernel waits for progress
    bool mover = true;                  // short pulls are orders to a kernel that stays
    unsigned mover_idle = 0;            // microseconds that a mover waits for an order
    bool mover_always = false;          // an order that finds no kernel launches one
    std::string profile;                // auto, none, or a file with the machine's figures
    bool fragment_size_is_set = false;  // by the environment
    bool direct_thresh_is_set = false;
    std::string cache_home;        // not a setting of ours: the user's directory for caches
    unsigned local_processes = 0;  // nor this: processes of the job on this machine; 0: not known
    bool launches_block = false;   // nor this: CUDA_LAUNCH_BLOCKING is set
    bool watches_allocations = true;  // nor this: UCX_MEMTYPE_CACHE is not off
    // Nor these: UCX_TLS, and UCX_..._TLS of programs with a prefix of their own, where set.
    std::vector<setting_of_ucx> tls_lists;
    std::optional<std::string> visible_gpus;  // CUDA_VISIBLE_DEVICES
    unsigned sim_devices = 0;
    size_t sim_memory = 0;    // bytes a simulated device
    unsigned sim_device = 0;  // ordinal
    std::string sim_shared;   // how memory of cuda_nc_sim_malloc is shared: y, n, pieces, managed
    unsigned sim_delay = 0;   // microseconds: upper bound of the random delay of each operation
    uint64_t sim_seed = 0;
    std::string sim_faults;  // see src/ucs/backend/sim/README.md
};

struct setting_description {
    const char *name;  // without prefix: "STATS"
    const char *default_value;
    const char *help;   // one line, for users
    std::string value;  // in force
    const char *group;  // heading under which documents list it
    std::string type;   // "y, n", "number", "size", "list", "file", or the values to choose from
};

// Parsed at first use. A value that cannot be read is reported once and replaced by its default.
const settings &config() noexcept;

// For tests: reads the environment again. Not thread safe.
void reload_config_for_test();

// In the order of the table: groups stay together.
std::vector<setting_description> describe_settings();

// "64K", "1M", "1g", "4096", "inf" -> bytes; false where the text is wrong.
bool parse_size(const std::string &text, size_t *size_p) noexcept;

}  // namespace cuda_nc
