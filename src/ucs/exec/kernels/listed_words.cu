#include "ucs/exec/kernels/kernels.cuh"

namespace cuda_nc::exec {

const void *listed_words_kernel(locator_kind kind, unsigned word_log2) noexcept {
    return with_list_locator(kind, [&](auto locator) {
        return with_word(word_log2, [&](auto width) {
            return reinterpret_cast<const void *>(
                move_words_kernel<typename decltype(locator)::type, decltype(width)::value>);
        });
    });
}

}  // namespace cuda_nc::exec
