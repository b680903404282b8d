#include "ucs/exec/kernels/instances/kernels.cuh"

namespace cuda_nc::exec {

const void *strided_words_kernel(locator_kind kind, unsigned word_log2, bool deep) noexcept {
    return with_strided_locator(kind, [&](auto locator) {
        return with_word(word_log2, [&](auto width) {
            return words_kernel_of<typename decltype(locator)::type, decltype(width)::value>(deep);
        });
    });
}

}  // namespace cuda_nc::exec
