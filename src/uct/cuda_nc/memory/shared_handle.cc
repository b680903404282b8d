#include "uct/cuda_nc/memory/shared_handle.hpp"

#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>

namespace cuda_nc::uct {
namespace {

struct entry {
    bool is_shared = false;
    gpu::ipc_handle handle;
    // Of pieces:
    std::shared_ptr<void> keeper;
    const char *base = nullptr;
    uint64_t first_id = 0;  // of the piece there
    uint64_t last_use = 0;
};

uint64_t id_at(const char *base) noexcept {
    return gpu::platform::instance().query(base).allocation.id;
}

class handles {
  public:
    std::mutex mutex;

    // Throws std::bad_alloc. The caller holds the lock.
    const entry &find(gpu::device &gpu, const gpu::allocation_info &memory) {
        auto found = all_.find(memory.id);
        if (found == all_.end()) {
            if (all_.size() >= most) {
                all_.clear();  // ids never come again: some are of freed memory
            }
            found = all_.emplace(memory.id, make(gpu, memory)).first;
        }
        found->second.last_use = ++uses_;
        return found->second;
    }

  private:
    static constexpr size_t most = 1024, most_of_pieces = 64;

    entry make(gpu::device &gpu, const gpu::allocation_info &memory) {
        entry made;
        if (memory.shared == gpu::sharing::by_handle) {
            size_t offset;
            made.is_shared =
                gpu.ipc_export(memory.base, &made.handle, &offset) == UCS_OK && offset == 0;
        } else if (memory.shared == gpu::sharing::by_descriptor) {
            release_some();
            made.base = memory.base;
            made.first_id = id_at(memory.base);
            made.is_shared =
                gpu.ipc_share(memory.base, memory.size, &made.handle, &made.keeper) == UCS_OK;
        }
        return made;
    }

    void release_some() noexcept {
        size_t kept = 0;
        auto oldest = all_.end();
        for (auto at = all_.begin(); at != all_.end();) {
            const entry &one = at->second;
            if (one.base != nullptr && id_at(one.base) != one.first_id) {
                at = all_.erase(at);
                continue;
            }
            if (one.base != nullptr) {
                ++kept;
                if (oldest == all_.end() || one.last_use < oldest->second.last_use) {
                    oldest = at;
                }
            }
            ++at;
        }
        if (kept >= most_of_pieces) {
            all_.erase(oldest);
        }
    }

    std::map<uint64_t, entry> all_;  // by allocation_info::id
    uint64_t uses_ = 0;
};

}  // namespace

bool find_shared_handle(gpu::device &gpu, const gpu::allocation_info &memory,
                        gpu::ipc_handle *handle_p) noexcept try {
    static auto *only = new handles;  // outlives every thread
    if (memory.id == 0 || memory.shared == gpu::sharing::none) {
        return false;
    }
    std::lock_guard<std::mutex> guard(only->mutex);
    const entry &found = only->find(gpu, memory);
    if (found.is_shared) {
        *handle_p = found.handle;
    }
    return found.is_shared;
} catch (const std::bad_alloc &) {
    return false;
}

}  // namespace cuda_nc::uct
