#include "uct/cuda_nc/memory/shared_handle.hpp"

#include <iterator>
#include <map>
#include <mutex>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/gpu/span.hpp"

namespace cuda_nc::uct {
namespace {

struct entry {
    bool is_shared = false;
    gpu::ipc_handle handle;
    gpu::allocation_info pieces;  // base null: it is not made of such
    std::shared_ptr<void> keeper;
    uint64_t last_use = 0;
    uint64_t try_again = UINT64_MAX;  // at this use of any
    int device = 0;
};

// Whether the application has unmapped some of them since.
bool are_gone(const entry &one) noexcept {
    const gpu::allocation_info &pieces = one.pieces;
    const auto begin = reinterpret_cast<uintptr_t>(pieces.base);
    const gpu::allocation_info now = gpu::platform::instance().query(pieces.base).allocation;
    return gpu::find_span(one.device, now, begin, begin + pieces.size).id != pieces.id;
}

class handles {
  public:
    std::mutex mutex;

    // Null: not shared. Throws std::bad_alloc. The caller holds the lock.
    const entry *find(gpu::device &gpu, const gpu::allocation_info &memory) {
        auto found = all_.find(memory.id);
        if (found != all_.end() && uses_ >= found->second.try_again) {
            all_.erase(found);
            found = all_.end();
        }
        if (found == all_.end()) {
            entry made;
            const ucs_status_t status = make(gpu, memory, &made);
            const bool passing = status != UCS_OK && status != UCS_ERR_UNSUPPORTED;
            if (passing && memory.shared == gpu::sharing::by_handle) {
                return nullptr;  // perhaps the next time
            }
            made.is_shared = status == UCS_OK;
            made.try_again = passing ? uses_ + later : UINT64_MAX;  // pieces take long to export
            if (all_.size() >= most) {
                forget_unkept();  // ids never come again: some are of freed memory
            }
            found = all_.emplace(memory.id, std::move(made)).first;
        }
        found->second.last_use = ++uses_;
        return found->second.is_shared ? &found->second : nullptr;
    }

  private:
    static constexpr size_t most = 1024, most_of_pieces = 256;
    static constexpr uint64_t later = 1000;
    static constexpr unsigned most_released = 8;  // for one, where descriptors run out

    ucs_status_t make(gpu::device &gpu, const gpu::allocation_info &memory, entry *made) noexcept {
        if (memory.shared == gpu::sharing::by_handle) {
            size_t offset = 0;
            const ucs_status_t status = gpu.ipc_export(memory.base, &made->handle, &offset);
            return status == UCS_OK && offset != 0 ? UCS_ERR_UNSUPPORTED : status;
        }
        if (release_gone() >= most_of_pieces) {
            release_oldest();
        }
        made->pieces = memory;
        made->device = gpu.properties().ordinal;
        ucs_status_t status = UCS_ERR_NO_RESOURCE;
        for (unsigned i = 0; i < most_released && status == UCS_ERR_NO_RESOURCE; ++i) {
            status = gpu.ipc_share(memory.base, memory.size, &made->handle, &made->keeper);
            if (status == UCS_ERR_NO_RESOURCE && !release_oldest()) {
                break;
            }
        }
        if (status == UCS_ERR_NO_RESOURCE || status == UCS_ERR_EXCEEDS_LIMIT) {
            nc_warn_once(
                "GPU memory made of pieces (cuMemCreate) is not shared with other processes, which "
                "makes puts, gets and messages slower: each piece takes a file descriptor, and a "
                "quarter of `ulimit -n` are in use; raise that limit");
        }
        return status == UCS_ERR_EXCEEDS_LIMIT ? UCS_ERR_UNSUPPORTED : status;
    }

    // Of what the application has unmapped. How many others of pieces there are.
    size_t release_gone() noexcept {
        size_t kept = 0;
        for (auto at = all_.begin(); at != all_.end();) {
            const entry &one = at->second;
            if (one.pieces.base != nullptr && are_gone(one)) {
                at = all_.erase(at);
                continue;
            }
            kept += one.keeper != nullptr;
            ++at;
        }
        return kept;
    }

    // False: there is none of pieces.
    bool release_oldest() noexcept {
        auto oldest = all_.end();
        for (auto at = all_.begin(); at != all_.end(); ++at) {
            if (at->second.keeper != nullptr &&
                (oldest == all_.end() || at->second.last_use < oldest->second.last_use)) {
                oldest = at;
            }
        }
        if (oldest == all_.end()) {
            return false;
        }
        all_.erase(oldest);
        return true;
    }

    void forget_unkept() noexcept {
        for (auto at = all_.begin(); at != all_.end();) {
            at = at->second.keeper == nullptr ? all_.erase(at) : std::next(at);
        }
    }

    std::map<uint64_t, entry> all_;  // by allocation_info::id
    uint64_t uses_ = 0;
};

}  // namespace

bool find_shared_handle(gpu::device &gpu, const gpu::allocation_info &memory,
                        gpu::ipc_handle *handle_p, std::shared_ptr<void> *keeper_p) noexcept try {
    static auto *only = new handles;  // outlives every thread
    if (memory.id == 0 || memory.shared == gpu::sharing::none) {
        return false;
    }
    std::lock_guard<std::mutex> guard(only->mutex);
    const entry *found = only->find(gpu, memory);
    if (found == nullptr) {
        return false;
    }
    *handle_p = found->handle;
    if (keeper_p != nullptr) {
        *keeper_p = found->keeper;
    }
    return true;
} catch (const std::bad_alloc &) {
    return false;
}

}  // namespace cuda_nc::uct
