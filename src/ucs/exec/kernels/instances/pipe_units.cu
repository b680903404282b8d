#include "ucs/exec/kernels/instances/pipe.cuh"

namespace cuda_nc::exec {
namespace {

// Calls action(std::integral_constant<int, Align>).
template <class Action>
const void *with_unit_align(unsigned align_log2, Action &&action) {
    return align_log2 < 2 ? action(std::integral_constant<int, 1>())
                          : with_word(align_log2, action);
}

}  // namespace

const void *pipe_units_kernel(unsigned align_log2) noexcept {
    return with_unit_align(align_log2, [](auto align) {
        return reinterpret_cast<const void *>(pipe_kernel<units_mover<decltype(align)::value>>);
    });
}

const void *pull_units_kernel(unsigned align_log2, bool wide) noexcept {
    return with_unit_align(align_log2, [&](auto align) {
        constexpr int a = decltype(align)::value;
        return wide ? reinterpret_cast<const void *>(pull_kernel<units_mover<a, wide_pull_threads>>)
                    : reinterpret_cast<const void *>(pull_kernel<units_mover<a>>);
    });
}

}  // namespace cuda_nc::exec
