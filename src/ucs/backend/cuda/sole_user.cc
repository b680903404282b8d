#include "ucs/backend/cuda/sole_user.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>

#include "ucs/base/log.hpp"

namespace cuda_nc::gpu::cuda {

sole_user::~sole_user() {
    if (file_ >= 0) {
        close(file_);
    }
}

bool sole_user::enter(const std::string &bus_id, const char *folder) noexcept try {
    const std::string name =
        std::string(folder) + "/ucx_cuda_nc." + std::to_string(geteuid()) + "." + bus_id;
    const int file = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat what;
    struct flock lock = {};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = 1;
    // Locks of the open file: a fork or a second descriptor of this process does not end them.
    if (file < 0 || fstat(file, &what) != 0 || !S_ISREG(what.st_mode) || what.st_uid != geteuid() ||
        fcntl(file, F_OFD_SETLK, &lock) != 0) {
        nc_debug("no mover: %s cannot be used to see other users of the GPU", name.c_str());
        if (file >= 0) {
            close(file);
        }
        return false;
    }
    file_ = file;
    return true;
} catch (const std::bad_alloc &) {
    return false;
}

bool sole_user::is_alone() const noexcept {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = 1;
    return file_ >= 0 && fcntl(file_, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

}  // namespace cuda_nc::gpu::cuda
