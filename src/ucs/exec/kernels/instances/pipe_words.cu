#include "ucs/exec/kernels/instances/pipe.cuh"

namespace cuda_nc::exec {

const void *pipe_words_kernel(locator_kind kind, unsigned word_log2) noexcept {
    return with_mover_locator(kind, [&](auto locator) {
        using locator_type = typename decltype(locator)::type;
        return with_word(word_log2, [](auto width) -> const void * {
            constexpr int w = decltype(width)::value;
            if constexpr (w < least_word<locator_type>) {
                return nullptr;
            } else {
                return reinterpret_cast<const void *>(pipe_kernel<words_mover<locator_type, w>>);
            }
        });
    });
}

}  // namespace cuda_nc::exec
