// Interpolates between the figures that were measured.
#include <algorithm>
#include <cmath>

#include "ucs/model/profile.hpp"

namespace cuda_nc::model {
namespace {

// Once the bytes touched exceed the cache by this factor, it no longer helps.
constexpr double far_multiple = 2.5;

// Between `near` and `far`, by the bytes touched.
double between(double near, double far, double cache_size, double working_set) noexcept {
    const double of_cache = working_set / std::max(cache_size, 1.0);
    const double weight = std::log(std::max(of_cache, 1e-9)) / std::log(far_multiple);
    const double bounded = std::min(1.0, std::max(0.0, weight));
    return near + (far - near) * bounded;
}

// The alignment whose figures to use: the largest measured one that the layout has, else the least.
int choose_align(const moving &by, family what, gpu::direction dir, unsigned align_log2) noexcept {
    int best = -1, least = -1;
    for (const figure &one : by.figures) {
        if (one.what != what || one.dir != dir) {
            continue;
        }
        const int align = one.align_log2;
        best = align <= static_cast<int>(align_log2) ? std::max(best, align) : best;
        least = least < 0 ? align : std::min(least, align);
    }
    return best >= 0 ? best : least;
}

}  // namespace

double copy_rate(const moving &by, double working_set) noexcept {
    return between(by.near_copy, by.far_copy, static_cast<double>(by.cache_size), working_set);
}

double rate(const moving &by, family what, gpu::direction dir, unsigned align_log2, double block,
            double working_set) noexcept {
    dir = dir == gpu::direction::pack ? dir : gpu::direction::unpack;
    const int align = choose_align(by, what, dir, align_log2);
    if (align < 0) {  // nothing of this family was measured
        return what == family::strided
                   ? copy_rate(by, working_set)
                   : rate(by, family::strided, dir, align_log2, block, working_set);
    }
    const figure *below = nullptr, *above = nullptr;
    for (const figure &one : by.figures) {
        if (one.what != what || one.dir != dir || one.align_log2 != align) {
            continue;
        }
        if (one.block <= block && (below == nullptr || one.block > below->block)) {
            below = &one;
        }
        if (one.block >= block && (above == nullptr || one.block < above->block)) {
            above = &one;
        }
    }
    auto at = [&](const figure &one) {
        return between(one.near, one.far, static_cast<double>(by.cache_size), working_set);
    };
    if (below == nullptr) {  // a block costs as much as the smallest measured one
        return at(*above) * above->block / std::max(block, 1.0);
    }
    if (above == nullptr || above == below) {
        return at(*below);
    }
    const double place =
        std::log(block / below->block) / std::log(static_cast<double>(above->block) / below->block);
    return std::exp(std::log(at(*below)) * (1 - place) + std::log(at(*above)) * place);
}

std::optional<double> fastest_link(const machine_profile &of, const std::string &bus_id) noexcept {
    std::optional<double> best;
    for (const link_profile &one : of.links) {
        if (one.from == bus_id) {
            best = std::min(best.value_or(one.copy), one.copy);
        }
    }
    return best;
}

const char *name_of(family which) noexcept {
    static const char *const names[num_families] = {"strided", "sparse",     "listed",
                                                    "uneven",  "transposed", "pinned"};
    return names[static_cast<unsigned>(which) % num_families];
}

}  // namespace cuda_nc::model
