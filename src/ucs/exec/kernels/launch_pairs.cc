#include "ucs/exec/kernels/instances/kernels.cuh"
#include "ucs/exec/kernels/launch.hpp"
#include "ucs/exec/kernels/plan/pair_plan.hpp"

namespace cuda_nc::exec {

cudaError_t launch_pairs(loaded_kernels &kernels, const gpu::pair_list &list,
                         const kernel_limits &limits, cudaStream_t stream) noexcept {
    const pair_plan plan =
        plan_pairs(list.count, limits.num_sms, list.max_sms, list.ends != nullptr);
    end_mark end;
    if (list.ends != nullptr) {
        list.ends->count = plan.tells ? plan.grid : 0;
        if (plan.tells) {
            end = {list.ends->words, list.ends->value, false};
        }
    }
    const bool shared = plan.parts_log2 != 0;
    const launch_shape shape = {plan.grid, plan.threads,
                                plan.threads / warp_lanes * sizeof(pair_table),
                                limits.starts_early};
    if (list.made != nullptr) {
        layout_pair_work work = {*list.made, list.count, plan.run, plan.parts_log2};
        void *arguments[] = {&work, &end};
        return kernels.launch(layout_pairs_kernel(shared), shape, arguments, stream);
    }
    pair_work work = {list.pairs, list.count, plan.run, plan.parts_log2};
    void *arguments[] = {&work, &end};
    return kernels.launch(pairs_kernel(shared), shape, arguments, stream);
}

}  // namespace cuda_nc::exec
