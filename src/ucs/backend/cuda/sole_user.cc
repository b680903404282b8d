#include "ucs/backend/cuda/sole_user.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "ucs/base/log.hpp"

namespace cuda_nc::gpu::cuda {
namespace {

// Files that a child closes as soon as it is there: it would hold its parent's locks after the
// parent's end. No lock of ours: a child might find it taken for ever.
class inherited {
  public:
    // False: there is no room.
    static bool add(int file) noexcept { return will_close && replace(none, file + 1); }
    static void remove(int file) noexcept { replace(file + 1, none); }

  private:
    static constexpr int none = 0;

    static bool replace(int before, int after) noexcept {
        return std::any_of(files.begin(), files.end(), [&](std::atomic<int> &one) {
            int expected = before;
            return one.compare_exchange_strong(expected, after);
        });
    }
    static void close_all() noexcept {
        for (std::atomic<int> &one : files) {
            const int file = one.exchange(none) - 1;
            if (file >= 0) {
                close(file);
            }
        }
    }

    static inline std::array<std::atomic<int>, 64> files{};  // descriptors plus 1, one for each GPU
    // Now, and not at first use: a fork on another thread could miss a handler that is set later.
    static inline const bool will_close = pthread_atfork(nullptr, nullptr, close_all) == 0;
};

}  // namespace

class sole_user::locked_file {
  public:
    explicit locked_file(std::string name) noexcept : name_(std::move(name)) {}
    // A child has closed it, and may have opened another file by that number.
    ~locked_file() {
        if (file_ >= 0 && process_ == getpid()) {
            inherited::remove(file_);
            close(file_);
        }
    }
    locked_file(const locked_file &) = delete;
    locked_file &operator=(const locked_file &) = delete;

    bool open() noexcept {
        file_ = ::open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        struct stat what;
        struct flock lock = of(F_RDLCK);
        // Locks of the open file: a fork or a second descriptor of this process does not end them.
        return file_ >= 0 && inherited::add(file_) && fstat(file_, &what) == 0 &&
               S_ISREG(what.st_mode) && what.st_uid == geteuid() &&
               fcntl(file_, F_OFD_SETLK, &lock) == 0;
    }
    bool is_alone() const noexcept {
        struct flock lock = of(F_WRLCK);
        return process_ == getpid() && fcntl(file_, F_OFD_GETLK, &lock) == 0 &&
               lock.l_type == F_UNLCK;
    }
    // What a child remembers is its parent's.
    bool is_for(const std::string &name) const noexcept {
        return name_ == name && process_ == getpid();
    }

  private:
    static struct flock of(short type) noexcept {
        struct flock lock = {};
        lock.l_type = type;
        lock.l_whence = SEEK_SET;
        lock.l_len = 1;
        return lock;
    }

    const std::string name_;
    const pid_t process_ = getpid();
    int file_ = -1;
};

bool sole_user::enter(const std::string &bus_id, const char *folder) noexcept try {
    static std::mutex mutex;
    static auto *known = new std::vector<std::weak_ptr<locked_file>>;  // outlives all users
    const std::string name =
        std::string(folder) + "/ucx_cuda_nc." + std::to_string(geteuid()) + "." + bus_id;
    std::lock_guard<std::mutex> guard(mutex);
    for (const std::weak_ptr<locked_file> &one : *known) {
        std::shared_ptr<locked_file> held = one.lock();
        if (held != nullptr && held->is_for(name)) {
            file_ = std::move(held);
            return true;
        }
    }
    auto made = std::make_shared<locked_file>(name);
    if (!made->open()) {
        nc_debug("no mover: %s cannot be used to see other users of the GPU", name.c_str());
        return false;
    }
    known->erase(
        std::remove_if(known->begin(), known->end(), [](const auto &one) { return one.expired(); }),
        known->end());
    known->push_back(made);
    file_ = std::move(made);
    return true;
} catch (const std::bad_alloc &) {
    return false;
}

bool sole_user::is_alone() const noexcept {
    return file_ != nullptr && file_->is_alone();
}

}  // namespace cuda_nc::gpu::cuda
