#include "ucs/model/choices.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <memory>
#include <mutex>

#include "ucs/base/bits.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/model/profile_file.hpp"

namespace cuda_nc::model {
namespace {

constexpr double mib = 1 << 20;
// Users expect sends of up to so many bytes to be buffered: Open MPI does that in shared memory,
// and UCX with contiguous GPU memory.
constexpr size_t least_buffered = 4 << 10;
constexpr size_t most_buffered = 1 << 20;
constexpr size_t least_fragment = 256 << 10, most_fragment = 16 << 20;

// So large that a launch costs at most a fifth of the time of its bytes; the nearest power of two.
size_t choose_fragment(const gpu_profile &of) noexcept {
    const double bytes = 4 * of.completion / std::max(of.down, of.up) * mib;
    const double rounded = std::exp2(std::round(std::log2(std::max(bytes, 1.0))));
    return static_cast<size_t>(
        std::min<double>(most_fragment, std::max<double>(least_fragment, rounded)));
}

// A direct message is one kernel after a handshake; through host memory two kernels run one after
// the other.
size_t choose_buffered(const gpu_profile &of, double link) noexcept {
    constexpr double handshake = 6;  // us; messages of 1 KiB take 15 to 16 between two H200
    for (size_t bytes = least_buffered; bytes < most_buffered; bytes *= 2) {
        const double size = static_cast<double>(bytes) / mib;
        const double direct = handshake + of.completion + size * link;
        const double host = 2 * of.completion + size * (of.down + of.up);
        if (direct <= host) {
            return std::max(least_buffered, bytes / 2);
        }
    }
    return most_buffered;
}

uint64_t choose_staged(const gpu_profile &of, gpu::direction dir, unsigned align_log2,
                       double block) noexcept {
    const double second_step = of.copy_completion / 2;
    const double at_once = rate(of.moves, family::pinned, dir, align_log2, block, 0);
    const double steps = rate(of.moves, family::strided, dir, align_log2, block, 0) +
                         (dir == gpu::direction::pack ? of.down : of.up);
    if (at_once < steps * 1.1) {  // less is noise
        return never;
    }
    const double from = second_step / (at_once - steps) * mib;
    return from < 0x1p62 ? static_cast<uint64_t>(from) : never;
}

struct state {
    machine_profile profile;
    std::string why;
    std::vector<choices> of_gpu;
    choices usual;
    size_t longest_buffered = least_buffered;
};

const gpu_profile *find(const std::vector<gpu_profile> &all, const gpu::device_properties &p) {
    for (const gpu_profile &one : all) {
        if (one.name == p.name && one.bus_id == p.bus_id) {
            return &one;
        }
    }
    return nullptr;
}

double link_of(const machine_profile &profile, const gpu::device_properties &p) {
    return fastest_link(profile, p.bus_id).value_or(default_link(p));
}

// The profile in the file, or an empty one; *why_p says which, and why.
machine_profile read_file(const std::string &backend, std::string *why_p) {
    machine_profile read;
    const std::string path = profile_path(backend);
    if (path.empty()) {
        *why_p = "usual figures; no file is read";
        return machine_profile();
    }
    bool exists;
    std::string fault;
    if (read_profile(path, &read, &exists, &fault) && read.backend != backend) {
        fault = "it was measured with UCX_CUDA_NC_GPU=" + read.backend;
    } else if (fault.empty()) {
        *why_p = "measured on " + read.date + ", " + path;
        return read;
    }
    if (!exists && config().profile == "auto") {
        *why_p = "usual figures; nc_perftest tune measures this machine's";
        return machine_profile();
    }
    nc_warn("the machine profile %s is ignored: %s", path.c_str(), fault.c_str());
    *why_p = "usual figures; " + path + " is ignored: " + fault;
    return machine_profile();
}

void add_gpus(const machine_profile &read, gpu::platform &platform, state *made) {
    std::string unknown;
    for (int ordinal = 0; ordinal < platform.num_devices(); ++ordinal) {
        gpu::device *device = platform.get_device(ordinal);
        const gpu::device_properties properties =
            device != nullptr ? device->properties() : gpu::device_properties();
        const gpu_profile *known = find(read.gpus, properties);
        if (known == nullptr && read.measured) {
            unknown += (unknown.empty() ? "" : ", ") + properties.name + " " + properties.bus_id;
        }
        made->profile.gpus.push_back(known != nullptr ? *known : default_gpu(properties));
        made->of_gpu.push_back(make_choices(made->profile.gpus.back(), link_of(read, properties)));
        made->longest_buffered =
            std::max(made->longest_buffered, made->of_gpu.back().most_buffered);
    }
    if (!unknown.empty()) {
        nc_warn("the machine profile does not know %s: run nc_perftest tune again",
                unknown.c_str());
        made->why += "; usual figures for " + unknown;
    }
}

std::unique_ptr<state> make() {
    gpu::platform &platform = gpu::platform::instance();
    auto made = std::make_unique<state>();
    made->profile = read_file(platform.name(), &made->why);
    if (!made->profile.measured) {
        made->profile.host_moves = default_host();
        made->profile.backend = platform.name();
    }
    const machine_profile read = made->profile;
    made->profile.gpus.clear();
    made->usual = make_choices(default_gpu(gpu::device_properties()), 2.7);
    add_gpus(read, platform, made.get());
    nc_debug("machine profile: %s", made->why.c_str());
    return made;
}

// `made` is never destroyed.
void set_rules(const state &made) noexcept {
    for (size_t i = 0; i < made.profile.gpus.size(); ++i) {
        gpu::device *device = gpu::platform::instance().get_device(static_cast<int>(i));
        if (device != nullptr) {
            device->set_rules(&made.profile.gpus[i].rules);
        }
    }
}

std::atomic<state *> known{nullptr};

__attribute__((noinline)) const state &make_once() noexcept {
    static std::mutex mutex;
    static state &nothing = *new state;
    std::lock_guard<std::mutex> guard(mutex);
    if (known.load(std::memory_order_acquire) == nullptr) {
        // Never destroyed: it is read during exit, and by other threads while a test reloads it.
        static auto *all = new std::vector<std::unique_ptr<state>>;
        state *made = &nothing;
        try {
            all->push_back(make());
            made = all->back().get();
            set_rules(*made);
        } catch (...) {
            made->usual.fragment_size = size_t(2) << 20;
            for (auto &direction : made->usual.staged_from) {
                for (auto &lengths : direction) {
                    std::fill(std::begin(lengths), std::end(lengths), never);
                }
            }
        }
        known.store(made, std::memory_order_release);
    }
    return *known.load(std::memory_order_relaxed);
}

const state &get() noexcept {
    state *made = known.load(std::memory_order_acquire);
    return CUDA_NC_LIKELY(made != nullptr) ? *made : make_once();
}

}  // namespace

choices make_choices(const gpu_profile &of, double link) {
    choices made;
    made.fragment_size = choose_fragment(of);
    made.most_buffered = choose_buffered(of, link);
    for (unsigned align = 0; align < num_aligns; ++align) {
        for (unsigned length = 0; length < num_lengths; ++length) {
            // A block of no more than its alignment is one word.
            const double block = std::max(uint64_t{1} << length, uint64_t{1} << align);
            made.staged_from[0][align][length] =
                choose_staged(of, gpu::direction::pack, align, block);
            made.staged_from[1][align][length] =
                choose_staged(of, gpu::direction::unpack, align, block);
        }
    }
    return made;
}

const machine_profile &machine() noexcept {
    return get().profile;
}

std::string why_machine() {
    return get().why;
}

const choices &choices_of(int ordinal) noexcept {
    const state &all = get();
    return ordinal >= 0 && static_cast<size_t>(ordinal) < all.of_gpu.size()
               ? all.of_gpu[static_cast<size_t>(ordinal)]
               : all.usual;
}

size_t fragment_size(int ordinal) noexcept {
    return config().fragment_size_is_set ? config().fragment_size
                                         : choices_of(ordinal).fragment_size;
}

size_t direct_thresh(bool buffered) noexcept {
    if (config().direct_thresh_is_set) {
        return config().direct_thresh;
    }
    return buffered ? get().longest_buffered + 1 : 1;
}

bool prefers_staging(const choices &by, gpu::direction dir, unsigned align_log2,
                     uint64_t packed_size, uint64_t num_blocks) noexcept {
    const uint64_t mean = packed_size / std::max<uint64_t>(1, num_blocks);
    const unsigned length = std::min(num_lengths - 1, log2_floor(std::max<uint64_t>(1, mean)));
    return packed_size >= by.staged_from[dir == gpu::direction::pack ? 0 : 1]
                                        [std::min(align_log2, num_aligns - 1)][length];
}

void reload_machine_for_test() {
    known.store(nullptr, std::memory_order_release);  // the old one may still be in use
}

}  // namespace cuda_nc::model
