#include "uct/cuda_nc/one_sided/host_process.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "ucs/base/log.hpp"

namespace cuda_nc::uct {
namespace {

int open_process(uint32_t pid) noexcept {
#ifdef SYS_pidfd_open
    return static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0u));
#else
    return static_cast<int>(syscall(434, static_cast<pid_t>(pid), 0u));  // on every machine
#endif
}

// Addresses of one process, for the kernel. What follows on what was there before lengthens it.
class pieces {
  public:
    // One more may be added, and one before it.
    bool has_room() const noexcept { return number_ + 2 <= most; }
    void add(char *address, uint64_t length) noexcept {
        if (number_ != 0 && end_ == address) {
            all_[number_ - 1].iov_len += length;
        } else {
            all_[number_++] = {address, length};
        }
        end_ = address + length;
    }
    void skip(uint64_t bytes) noexcept {
        while (bytes != 0) {
            iovec &first = all_[first_];
            const uint64_t part = std::min<uint64_t>(bytes, first.iov_len);
            first.iov_base = static_cast<char *>(first.iov_base) + part;
            first.iov_len -= part;
            bytes -= part;
            first_ += first.iov_len == 0 ? 1 : 0;
        }
    }
    void clear() noexcept { number_ = first_ = 0; }
    const iovec *begin() const noexcept { return all_ + first_; }
    size_t number() const noexcept { return number_ - first_; }

    // Bytes from the end of what was added last to `address`, if they are few; else 0.
    uint64_t gap_before(const char *address) const noexcept {
        const uint64_t gap =
            reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(end_);
        return number_ != 0 && gap < longest_gap ? gap : 0;
    }

    // So short a gap lies in the pages of the bytes around it, which are there.
    static constexpr uint64_t longest_gap = 512;

  private:
    static constexpr size_t most = host_process::most_blocks;
    iovec all_[most];
    size_t number_ = 0, first_ = 0;
    char *end_ = nullptr;
};

ucs_status_t status_of_failure(int error) noexcept {
    switch (error) {
        case ESRCH:
            return UCS_ERR_CONNECTION_RESET;
        case EFAULT:
            return UCS_ERR_INVALID_ADDR;
        case EPERM:
            return UCS_ERR_UNREACHABLE;
        case ENOMEM:
            return UCS_ERR_NO_MEMORY;
        default:
            return UCS_ERR_IO_ERROR;
    }
}

ucs_status_t move_all(pid_t pid, bool writes, pieces *local, pieces *remote,
                      uint64_t total) noexcept {
    while (total != 0) {
        const auto call = writes ? process_vm_writev : process_vm_readv;
        const ssize_t moved =
            call(pid, local->begin(), local->number(), remote->begin(), remote->number(), 0);
        if (moved < 0 && errno == EINTR) {
            continue;
        }
        if (moved <= 0) {
            const int error = moved < 0 ? errno : EFAULT;
            nc_debug("process %d: %s: %s", static_cast<int>(pid),
                     writes ? "process_vm_writev" : "process_vm_readv", std::strerror(error));
            return status_of_failure(error);
        }
        // All of it, but where a page is not there, and above 2 GiB.
        total -= static_cast<uint64_t>(moved);
        local->skip(static_cast<uint64_t>(moved));
        remote->skip(static_cast<uint64_t>(moved));
    }
    return UCS_OK;
}

}  // namespace

std::shared_ptr<host_process> host_process::find(const process_id &which) noexcept try {
    struct known {
        process_id which;
        std::weak_ptr<host_process> found;
    };
    static std::mutex mutex;
    static auto &all = *new std::vector<known>;  // used during exit
    static int numbers = 0;
    std::lock_guard<std::mutex> guard(mutex);
    for (const known &one : all) {
        std::shared_ptr<host_process> found = one.which == which ? one.found.lock() : nullptr;
        if (found != nullptr) {
            return found;
        }
    }
    all.erase(std::remove_if(all.begin(), all.end(),
                             [](const known &one) { return one.found.expired(); }),
              all.end());
    all.push_back({which, {}});
    const int file = open_process(which.pid);
    // Looked at when the number can no longer become another's.
    if (file < 0 || process_id_of(which.pid) != which) {
        all.pop_back();
        if (file >= 0) {
            close(file);
        }
        return nullptr;
    }
    auto *made = new (std::nothrow) host_process(which, file, numbers++);
    if (made == nullptr) {
        all.pop_back();
        close(file);
        return nullptr;
    }
    std::shared_ptr<host_process> kept(made);
    all.back().found = kept;
    return kept;
} catch (const std::bad_alloc &) {
    return nullptr;
}

host_process::~host_process() {
    close(file_);
}

bool host_process::has_ended() const noexcept {
    pollfd its = {file_, POLLIN, 0};
    return poll(&its, 1, 0) > 0;  // not where a signal comes
}

// No process has anything at address 0, but only who may read is told so.
bool host_process::is_open() const noexcept {
    if (is_open_.load(std::memory_order_relaxed)) {
        return true;
    }
    char byte;
    const iovec local = {&byte, 1}, remote = {nullptr, 1};
    const ssize_t moved =
        process_vm_readv(static_cast<pid_t>(which_.pid), &local, 1, &remote, 1, 0);
    const bool may = (moved >= 0 || errno == EFAULT) && !has_ended();
    is_open_.store(may, std::memory_order_relaxed);
    return may;
}

// What takes time is each piece of the other process's memory, whose pages the kernel looks for: a
// short gap between two of them is read too, and goes nowhere.
ucs_status_t host_process::move(bool writes, const gpu::block_pair *pairs,
                                size_t count) const noexcept {
    // Not on the stack, which may be a small one of a thread of the user's.
    struct both_sides {
        pieces local, remote;
        char nowhere[pieces::longest_gap];
    };
    const std::unique_ptr<both_sides> room(new (std::nothrow) both_sides);
    if (room == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    for (size_t done = 0; done < count;) {
        pieces &local = room->local, &remote = room->remote;
        local.clear();
        remote.clear();
        uint64_t total = 0;
        constexpr uint64_t much = 1 << 20;  // between two looks whether the process is there
        for (; done < count && total < much && local.has_room() && remote.has_room(); ++done) {
            const gpu::block_pair &one = pairs[done];
            char *const own = writes ? const_cast<char *>(one.from) : one.to;
            char *const other = writes ? one.to : const_cast<char *>(one.from);
            const uint64_t gap = writes ? 0 : remote.gap_before(other);
            if (gap != 0) {
                local.add(room->nowhere, gap);
                remote.add(other - gap, gap);
            }
            local.add(own, one.length);
            remote.add(other, one.length);
            total += gap + one.length;
        }
        if (has_ended()) {
            return UCS_ERR_CONNECTION_RESET;
        }
        const ucs_status_t status =
            move_all(static_cast<pid_t>(which_.pid), writes, &local, &remote, total);
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
}

}  // namespace cuda_nc::uct
