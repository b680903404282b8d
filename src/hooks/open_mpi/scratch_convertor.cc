#include "hooks/open_mpi/scratch_convertor.hpp"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "hooks/open_mpi/convertor_map.hpp"

namespace cuda_nc::hooks {

// A deep type makes a convertor allocate a stack, which must be freed before it is prepared again.
// Open MPI has that code only in its headers, too, so we find the stack ourselves.
class own_convertor {
  public:
    explicit own_convertor(const convertor_source &from) noexcept
        : convertor_(static_cast<char *>(from.create(static_cast<int32_t>(from.arch), 0))) {
        if (convertor_ == nullptr || from.byte == nullptr ||
            from.prepare_for_send(convertor_, from.byte, 1, nullptr) != 0) {
            return;
        }
        // The one word that points into the convertor itself is that of the stack. The stack's
        // first entries lie there, behind all that would need to be restored. Words that nobody has
        // set yet may hold anything.
        size_t found = 0;
        for (size_t at = sizeof(void *); at < readable_convertor_bytes; at += sizeof(void *)) {
            const auto offset =
                reinterpret_cast<uintptr_t>(word(at)) - reinterpret_cast<uintptr_t>(convertor_);
            if (offset <= readable_convertor_bytes) {
                ++found;
                stack_at_ = at;
                num_initial_ = offset;
            }
        }
        if (found != 1 || num_initial_ <= stack_at_) {
            num_initial_ = 0;
        }
        std::memcpy(initial_, convertor_, num_initial_);
    }
    void *get() const noexcept { return convertor_; }

    void drop_stack() noexcept {
        void *stack = num_initial_ != 0 ? word(stack_at_) : nullptr;
        if (stack != nullptr && stack != convertor_ + num_initial_) {
            std::free(stack);
            std::memcpy(convertor_, initial_, num_initial_);
        }
    }

  private:
    void *word(size_t at) const noexcept {
        void *value;
        std::memcpy(&value, convertor_ + at, sizeof(value));
        return value;
    }

    char *const convertor_;
    size_t stack_at_ = 0;     // offset of the stack's address, in bytes
    size_t num_initial_ = 0;  // bytes before the stack's first entries; 0: no stack was found
    char initial_[readable_convertor_bytes];
};

namespace {

class convertor_pool {
  public:
    own_convertor *acquire(const convertor_source &from) {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            if (!free_.empty()) {
                own_convertor *one = free_.back();
                free_.pop_back();
                return one;
            }
            free_.reserve(free_.capacity() + 1);  // so that release() never allocates
        }
        return new own_convertor(from);
    }

    void release(own_convertor *one) noexcept {
        std::lock_guard<std::mutex> guard(mutex_);
        free_.push_back(one);
    }

  private:
    std::mutex mutex_;
    std::vector<own_convertor *> free_;
};

convertor_pool &pool() {
    static auto *only = new convertor_pool;
    return *only;
}

}  // namespace

scratch_convertor::scratch_convertor(const convertor_source &from) : own_(pool().acquire(from)) {}

scratch_convertor::~scratch_convertor() {
    if (get() != nullptr) {
        own_->drop_stack();
        pool().release(own_);
    } else {
        delete own_;
    }
}

void *scratch_convertor::get() const noexcept {
    return own_->get();
}

}  // namespace cuda_nc::hooks
