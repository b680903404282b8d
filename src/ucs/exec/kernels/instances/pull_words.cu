#include "ucs/exec/kernels/instances/pipe.cuh"

namespace cuda_nc::exec {

// Not for words of 1 and 2 bytes: they are rare, and the start of the kernel matters little to
// their time.
const void *pull_words_kernel(locator_kind kind, unsigned word_log2) noexcept {
    constexpr unsigned least_log2 = 2;
    if (word_log2 < least_log2) {
        return nullptr;
    }
    return with_mover_locator(kind, [&](auto locator) {
        return with_word(word_log2, [](auto width) -> const void * {
            constexpr int w = decltype(width)::value;
            if constexpr (w < 1 << least_log2) {
                return nullptr;
            } else {
                using mover = words_mover<typename decltype(locator)::type, w>;
                return reinterpret_cast<const void *>(pull_kernel<mover>);
            }
        });
    });
}

}  // namespace cuda_nc::exec
