#include "ucs/exec/kernels/instances/pipe.cuh"

namespace cuda_nc::exec {
namespace {

// Calls action(std::integral_constant<int, W>); null for words that are too short.
template <class Action>
const void *with_block_word(unsigned word_log2, Action &&action) {
    if (word_log2 < least_pipe_block_log2) {
        return nullptr;
    }
    return with_word(word_log2, [&](auto width) -> const void * {
        constexpr int w = decltype(width)::value;
        if constexpr (w < (1 << least_pipe_block_log2)) {
            return nullptr;
        } else {
            return action(width);
        }
    });
}

}  // namespace

const void *pipe_blocks_kernel(unsigned word_log2) noexcept {
    return with_block_word(word_log2, [](auto width) {
        return reinterpret_cast<const void *>(pipe_kernel<blocks_mover<decltype(width)::value>>);
    });
}

const void *pull_blocks_kernel(unsigned word_log2) noexcept {
    return with_block_word(word_log2, [](auto width) {
        return reinterpret_cast<const void *>(pull_kernel<blocks_mover<decltype(width)::value>>);
    });
}

}  // namespace cuda_nc::exec
