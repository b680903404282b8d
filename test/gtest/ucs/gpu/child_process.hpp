// Runs a test of this program in a new process: forked and executed, so that it may use GPUs.
#pragma once

#include <string>
#include <vector>

namespace cuda_nc::gpu::test {

// This program, to be executed again. Under an emulator: what CUDA_NC_TEST_PROGRAM names.
const char *this_program();

class child_process {
  public:
    // `test`, a disabled one, with `settings` ("NAME=value") added to the environment. Two pipes
    // connect the processes; the child's ends are descriptors 3 (in) and 4 (out).
    child_process(const std::string &test, const std::vector<std::string> &settings);
    ~child_process();
    child_process(const child_process &) = delete;
    child_process &operator=(const child_process &) = delete;

    int pid() const { return pid_; }
    bool send(const void *bytes, size_t size);
    bool receive(void *bytes, size_t size);  // false where the child has ended

    // What the child has printed so far, for messages; it prints nothing itself.
    std::string output() const;

    // The exit status, or minus the number of the signal that ended it; 0: it was waited for
    // before.
    int wait();
    void kill();  // by SIGKILL; then wait(). Nothing, once it has been waited for

  private:
    int pid_ = -1, to_child_ = -1, from_child_ = -1, output_ = -1;
};

// For the child.
bool send_to_parent(const void *bytes, size_t size);
bool receive_from_parent(void *bytes, size_t size);

}  // namespace cuda_nc::gpu::test
