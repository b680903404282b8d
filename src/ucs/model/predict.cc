#include "ucs/model/predict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ucs/base/bits.hpp"
#include "ucs/exec/kernels/plan/part.hpp"
#include "ucs/exec/kernels/plan/policy.hpp"

namespace cuda_nc::model {
namespace {

constexpr double mib = 1 << 20;
constexpr double line = 64;         // bytes that the memory moves at least
constexpr double apart = 512;       // from this distance on blocks share nothing with each other
constexpr double long_block = 256;  // bytes; the distance of such blocks does not count

// Samples up to `most` neighbours in the list: how many do not follow each other, and their mean
// distance.
void sample_list(const layout_view &view, features *f) {
    constexpr uint64_t most = 512;
    const uint64_t pairs = view.num_blocks - 1, step = std::max<uint64_t>(1, pairs / most);
    double jumps = 0, distance = 0, seen = 0;
    for (uint64_t i = 0; i < pairs; i += step) {
        const double far = static_cast<double>(view.block_displacement(i + 1)) -
                           static_cast<double>(view.block_displacement(i));
        const double length = static_cast<double>(view.block_packed(i + 1) - view.block_packed(i));
        const bool follows = far >= 0 && far <= std::max(4 * length, 4096.0);
        jumps += follows ? 0 : 1;
        distance += follows ? far : apart;
        seen += 1;
    }
    f->scattered = jumps / seen;
    f->distance = distance / seen;
}

double mixed(double first, double second, double weight) noexcept {
    return std::exp(std::log(first) * (1 - weight) + std::log(second) * weight);
}

// 0: as dense as the family `strided`; 1: each block is alone in memory.
double sparseness(const features &f) noexcept {
    const double dense = std::max(2 * f.block, line);
    if (f.block >= long_block || f.distance <= dense) {
        return 0;
    }
    return std::min(1.0, std::log(f.distance / dense) / std::log(apart / dense));
}

double working_set(const features &f, const layout &what) noexcept {
    return f.touched + static_cast<double>(what.packed_size() + what.table_bytes());
}

double strided_rate(const moving &by, const features &f, gpu::direction dir, double set,
                    family *mostly) noexcept {
    const double dense = rate(by, family::strided, dir, f.align_log2, f.block, set);
    const double weight = sparseness(f);
    *mostly = weight > 0.5 ? family::sparse : family::strided;
    if (weight == 0) {
        return dense;
    }
    return mixed(dense, std::max(dense, rate(by, family::sparse, dir, f.align_log2, f.block, set)),
                 weight);
}

double rate_of(const moving &by, const features &f, bool transposed, gpu::direction dir, double set,
               family *mostly) noexcept {
    if (transposed || f.uneven) {
        *mostly = transposed ? family::transposed : family::uneven;
        return rate(by, *mostly, dir, f.align_log2, f.block, set);
    }
    double strided = strided_rate(by, f, dir, set, mostly);
    if (!f.list) {
        return strided;
    }
    const double listed = rate(by, family::listed, dir, f.align_log2, f.block, set);
    *mostly = f.scattered > 0.5 ? family::listed : *mostly;
    return mixed(strided, listed, f.scattered);
}

std::string text_of(const exec::kernel_choice &c) {
    const std::string word = std::to_string(1u << c.word_log2) + " B";
    switch (c.how) {
        case exec::method::words:
            return "words of " + word;
        case exec::method::windows:
            return "16-byte windows put together of any bytes";
        case exec::method::pieces:
            return "16-byte pieces, and bytes at the edges of blocks";
        case exec::method::units:
            return "work units of " + std::to_string(1u << c.unit_log2) + " B, one a warp";
        case exec::method::blocks:
            return std::to_string(1u << c.blocks.lanes_log2) + " lanes for a block, words of " +
                   word;
        case exec::method::tiles:
            return "tiles in shared memory, elements of " + word;
    }
    return "";
}

}  // namespace

features features_of(const layout &what, size_t misalign) {
    const layout_view &view = what.view();
    features f;
    const double blocks = static_cast<double>(std::max<uint64_t>(1, what.total_blocks()));
    f.block = static_cast<double>(what.packed_size()) / blocks;
    f.list = view.num_blocks > 1;
    f.uneven = f.list && view.block_length == 0;
    f.align_log2 = view.align_log2;
    while (f.align_log2 != 0 && misalign % (size_t(1) << f.align_log2) != 0) {
        --f.align_log2;
    }
    if (f.list) {
        sample_list(view, &f);
    } else {
        f.distance =
            view.num_dims != 0 ? static_cast<double>(magnitude(view.dims[0].stride)) : f.block;
    }
    const double span = static_cast<double>(what.upper_bound() - what.lower_bound());
    const double lines = std::ceil(f.block / line) * line;
    f.touched = std::min(span, blocks * lines);
    return f;
}

exec::kernel_choice choose_kernel(const gpu_profile &of, unsigned num_sms, const layout &what,
                                  gpu::direction dir, size_t misalign, unsigned max_sms) {
    gpu::transfer work;
    work.dir = dir;
    work.layout = what.view();
    // Any aligned addresses will do: nothing is read.
    work.base = reinterpret_cast<char *>((uintptr_t{1} << 40) + misalign);
    work.packed = reinterpret_cast<char *>(uintptr_t{1} << 41);
    work.length = what.packed_size();
    exec::kernel_limits limits;
    limits.num_sms = num_sms;
    limits.l2_size = of.moves.cache_size;
    limits.rules = &of.rules;
    exec::part first;
    exec::cut_part(work, 0, &first);
    return exec::choose_kernel(first, what.view().align_log2, limits, max_sms);
}

planned_kernel plan_kernel(const gpu_profile &of, unsigned num_sms, const layout &what,
                           gpu::direction dir, size_t misalign, unsigned max_sms) {
    const exec::kernel_choice c = choose_kernel(of, num_sms, what, dir, misalign, max_sms);
    planned_kernel planned;
    planned.grid = c.grid;
    planned.threads = c.threads;
    planned.tiles = c.how == exec::method::tiles;
    planned.words = c.how == exec::method::words;
    planned.word_log2 = c.word_log2;
    planned.text = text_of(c);
    return planned;
}

prediction predict(const gpu_profile &of, unsigned num_sms, const layout &what, gpu::direction dir,
                   packed_side where, size_t misalign) {
    prediction p;
    if (what.packed_size() == 0) {
        return p;
    }
    const planned_kernel kernel = plan_kernel(of, num_sms, what, dir, misalign, 0);
    features f = features_of(what, misalign);
    f.align_log2 = kernel.words || kernel.tiles ? kernel.word_log2 : f.align_log2;
    const double set = working_set(f, what);
    const double size = static_cast<double>(what.packed_size()) / mib;
    p.rate = rate_of(of.moves, f, kernel.tiles, dir, set, &p.what);
    if (where == packed_side::pinned) {
        // The slower of bus and memory.
        p.rate = std::max(p.rate, rate(of.moves, family::pinned, dir, f.align_log2, f.block, set));
        p.what = family::pinned;
    }
    p.each = std::max(of.moves.call, start_of(of.moves) + size * p.rate);
    p.single = of.completion + size * p.rate;
    if (where == packed_side::staged) {
        const double copy =
            of.copy_completion / 2 + size * (dir == gpu::direction::pack ? of.down : of.up);
        p.each += copy;
        p.single += copy;
    }
    return p;
}

prediction predict_host(const moving &by, const layout &what, gpu::direction dir, size_t misalign) {
    prediction p;
    if (what.packed_size() == 0) {
        return p;
    }
    const features f = features_of(what, misalign);
    p.rate = rate_of(by, f, false, dir, working_set(f, what), &p.what);
    p.each = p.single = start_of(by) + static_cast<double>(what.packed_size()) / mib * p.rate;
    return p;
}

double predict_direct(const gpu_profile &of, unsigned num_sms, const layout &what, double link,
                      size_t misalign) {
    // Both kernels begin at about the same time. The part of the slower one that the link waits for
    // fits bench/results/2026-11-22-h200-small-messages.md.
    constexpr double launches = 1.6, apart_from_link = 0.6;
    double slower = 0;
    for (auto dir : {gpu::direction::pack, gpu::direction::unpack}) {
        slower = std::max(slower, predict(of, num_sms, what, dir, packed_side::gpu, misalign).rate);
    }
    return launches * of.completion + static_cast<double>(what.packed_size()) / mib *
                                          std::max(slower, link + apart_from_link * slower);
}

double predict_through_host(const gpu_profile &of, const moving &host, uint64_t bytes) noexcept {
    // The sender's kernel and CPU copy and the receiver's copy and kernel overlap, on different
    // parts of the message.
    const double slowest = std::max({of.down, of.up, host.far_copy});
    return 2 * of.completion + static_cast<double>(bytes) / mib * slowest;
}

}  // namespace cuda_nc::model
