#include "ucs/exec/kernels/pipe.cuh"

namespace cuda_nc::exec {

const void *pipe_words_kernel(locator_kind kind, unsigned word_log2) noexcept {
    auto kernel_of = [&](auto locator) {
        return with_word(word_log2, [&](auto width) {
            using mover = words_mover<typename decltype(locator)::type, decltype(width)::value>;
            return reinterpret_cast<const void *>(pipe_kernel<mover>);
        });
    };
    return with_uniform_locator(kind, kernel_of);
}

}  // namespace cuda_nc::exec
