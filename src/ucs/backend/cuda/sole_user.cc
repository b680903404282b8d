#include "ucs/backend/cuda/sole_user.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "ucs/base/log.hpp"

namespace cuda_nc::gpu::cuda {

class sole_user::locked_file {
  public:
    explicit locked_file(std::string name) noexcept : name_(std::move(name)) {}
    ~locked_file() {
        if (file_ >= 0) {
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
        return file_ >= 0 && fstat(file_, &what) == 0 && S_ISREG(what.st_mode) &&
               what.st_uid == geteuid() && fcntl(file_, F_OFD_SETLK, &lock) == 0;
    }
    bool is_alone() const noexcept {
        struct flock lock = of(F_WRLCK);
        return fcntl(file_, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
    }
    // A child has the parent's file, and with it the parent's lock.
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
