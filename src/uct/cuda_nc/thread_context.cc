#include "uct/cuda_nc/thread_context.hpp"

#include "uct/cuda_nc/user_buffer.hpp"

namespace cuda_nc::uct {

thread_local pack_call *pack_call::current_ = nullptr;
thread_local unpack_call *unpack_call::current_ = nullptr;
std::atomic<user_buffer *(*)(uint64_t word) noexcept> buffer_finder{nullptr};

}  // namespace cuda_nc::uct
