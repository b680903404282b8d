#include "ucs/exec/kernels/plan/pair_plan.hpp"

#include <algorithm>

#include "ucs/base/bits.hpp"
#include "ucs/exec/kernels/move/pairs.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::exec {
namespace {

constexpr uint32_t warps_per_sm = 32;  // as many as have registers
constexpr uint32_t least_warps = 4;    // of a thread block
constexpr uint32_t most_warps = 16;

// log2 of the warps that share a pair, where `all` warps have `count` pairs.
uint32_t choose_parts_log2(uint64_t count, uint32_t all) {
    constexpr uint64_t most = gpu::block_pair::best_length / pair_piece;
    return log2_floor(std::clamp<uint64_t>(all / count, 1, most));
}

// Few thread blocks, because each that tells of its end costs some time.
void plan_few(uint32_t count, pair_plan *plan) {
    constexpr uint32_t wanted = gpu::end_words::most / 2;
    plan->run = 1;
    plan->parts_log2 = choose_parts_log2(count, most_told_pairs);
    const uint32_t all = count << plan->parts_log2;
    const uint32_t warps = std::clamp(divide_up(all, wanted), least_warps, most_warps);
    plan->threads = warps * warp_lanes;
    plan->grid = divide_up(all, warps);
}

}  // namespace

pair_plan plan_pairs(uint64_t count, unsigned num_sms, unsigned max_sms, bool tells) noexcept {
    static_assert(most_told_pairs == gpu::end_words::most * most_warps, "a warp for each");
    pair_plan plan;
    const uint32_t sms = std::max(1u, max_sms != 0 ? std::min(num_sms, max_sms) : num_sms);
    if (tells && count <= most_told_pairs) {
        plan_few(static_cast<uint32_t>(count), &plan);
    } else {
        // Runs of one length, so that all warps have as many.
        const uint32_t all = sms * warps_per_sm;
        const uint64_t rounds = divide_up(count, uint64_t{all} * warp_lanes);
        plan.run = static_cast<uint32_t>(divide_up(count, all * rounds));
        plan.parts_log2 = choose_parts_log2(count, all);
        const auto busy = static_cast<uint32_t>(
            std::min<uint64_t>(all, divide_up(count, uint64_t{plan.run}) << plan.parts_log2));
        // A short list on all multiprocessors. Under a limit a thread block fills one, because the
        // hardware spreads smaller ones.
        const uint32_t warps =
            std::clamp(divide_up(busy, sms), least_warps, max_sms != 0 ? warps_per_sm : most_warps);
        plan.threads = warps * warp_lanes;
        plan.grid = divide_up(busy, warps);
    }
    plan.grid = std::min(plan.grid, max_sms != 0 ? sms : plan.grid);
    plan.tells = tells && plan.grid <= gpu::end_words::most;
    return plan;
}

}  // namespace cuda_nc::exec
