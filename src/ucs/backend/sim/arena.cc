#include "ucs/backend/sim/arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "ucs/backend/backends.hpp"
#include "ucs/base/bits.hpp"

namespace cuda_nc::gpu::sim {
namespace {

constexpr size_t alignment = 256;  // of cudaMalloc
constexpr size_t guard = 256;      // between two allocations, so that a step too far is noticed
constexpr size_t most_memory = size_t(1) << 40;
constexpr size_t poisoned = 64 << 10;  // bytes of new memory that hold a pattern
constexpr int poison = 0xcd;

void *bytes_at(uintptr_t address) noexcept {
    return reinterpret_cast<void *>(address);
}

}  // namespace

size_t reserved_bytes(size_t size) noexcept {
    return round_up(size, gpu_block) + gpu_block;
}

double_mapping::~double_mapping() {
    if (size_ != 0 && !forked()) {
        munmap(bytes_at(reserved_), reserved_bytes(size_));
        munmap(bytes_at(alias_), size_);
    }
}

bool double_mapping::map(int fd, off_t offset, size_t size) noexcept {
    const int flags = MAP_SHARED | MAP_NORESERVE;
    const size_t whole = reserved_bytes(size);
    void *reserved =
        mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) {
        return false;
    }
    const uintptr_t first = round_up(reinterpret_cast<uintptr_t>(reserved), gpu_block);
    void *view = mmap(bytes_at(first), size, PROT_NONE, flags | MAP_FIXED, fd, offset);
    void *alias = view != MAP_FAILED
                      ? mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, offset)
                      : MAP_FAILED;
    if (alias == MAP_FAILED) {
        munmap(reserved, whole);
        return false;
    }
    reserved_ = reinterpret_cast<uintptr_t>(reserved);
    view_ = first;
    alias_ = reinterpret_cast<uintptr_t>(alias);
    size_ = size;
    return true;
}

std::unique_ptr<arena> arena::make(size_t limit) noexcept {
    std::unique_ptr<arena> made(new (std::nothrow) arena);
    if (made == nullptr) {
        return nullptr;
    }
    made->limit_ = std::min(limit, most_memory);
    // Twice the memory: room for gaps, so that fragmentation is not what limits it.
    size_t size = 2 * round_up(made->limit_, page) + (size_t(64) << 20);
    made->fd_ = memfd_create("cuda_nc_sim", MFD_CLOEXEC);
    if (made->fd_ < 0 || ftruncate(made->fd_, static_cast<off_t>(size)) != 0 ||
        !made->mapping_.map(made->fd_, 0, size)) {
        return nullptr;
    }
    try {
        made->free_.emplace(0, size);
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
    return made;
}

arena::~arena() {
    if (fd_ >= 0) {
        close(fd_);
    }
}

ucs_status_t arena::allocate(size_t size, uintptr_t *address_p) noexcept {
    if (size > limit_) {
        return UCS_ERR_NO_MEMORY;
    }
    size_t whole = round_up(size, alignment) + guard;
    size_t offset = 0;
    try {
        std::lock_guard<std::mutex> lock(mutex_);
        if (size > limit_ - used_) {
            return UCS_ERR_NO_MEMORY;
        }
        auto gap = std::find_if(free_.begin(), free_.end(),
                                [whole](const auto &one) { return one.second >= whole; });
        if (gap == free_.end()) {
            return UCS_ERR_NO_MEMORY;
        }
        // The rest of the gap is entered first: an exception must change nothing.
        if (gap->second > whole) {
            free_.emplace_hint(std::next(gap), gap->first + whole, gap->second - whole);
        }
        offset = gap->first;
        free_.erase(gap);
        used_ += size;
    } catch (const std::bad_alloc &) {
        return UCS_ERR_NO_MEMORY;
    }
    *address_p = begin() + offset;
    std::memset(bytes_at(alias(*address_p)), poison, std::min(size, poisoned));
    return UCS_OK;
}

void arena::release(uintptr_t address, size_t size) noexcept {
    size_t offset = address - begin();
    size_t whole = round_up(size, alignment) + guard;
    // Pages that nobody shares go back to the system.
    size_t first = round_up(offset, page), last = (offset + whole) / page * page;
    if (last > first) {
        fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
                  static_cast<off_t>(last - first));
    }
    std::lock_guard<std::mutex> lock(mutex_);
    used_ -= size;
    auto next = free_.lower_bound(offset);
    if (next != free_.begin()) {
        auto previous = std::prev(next);
        if (previous->first + previous->second == offset) {
            offset = previous->first;
            whole += previous->second;
            free_.erase(previous);
        }
    }
    if (next != free_.end() && offset + whole == next->first) {
        whole += next->second;
        free_.erase(next);
    }
    try {
        free_.emplace(offset, whole);
    } catch (const std::bad_alloc &) {
        // the range is lost, which a test can bear
    }
}

}  // namespace cuda_nc::gpu::sim
