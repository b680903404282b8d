// Whether this process is the only one of its user, on this machine and with this library, that has
// a mover for a GPU or wants one. A file in /dev/shm for each GPU, on which each process holds a
// shared lock as long as it lives: a process that dies leaves none behind, and its forked children
// have none. Objects of one process share the lock.
#pragma once

#include <memory>
#include <string>

namespace cuda_nc::gpu::cuda {

class sole_user {
  public:
    // From now on other processes see this one. False: the file cannot be had. `folder` is for
    // tests.
    bool enter(const std::string &bus_id, const char *folder = "/dev/shm") noexcept;
    // Nobody else has entered; false before enter(). A system call.
    bool is_alone() const noexcept;

  private:
    class locked_file;
    std::shared_ptr<locked_file> file_;
};

}  // namespace cuda_nc::gpu::cuda
