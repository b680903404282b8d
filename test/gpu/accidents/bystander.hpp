// What else a program may do on its GPU while messages go on.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace gpu_test {

// A thread that computes at random moments, does what waits for all kernels of the device (it
// synchronises, allocates, frees), and forks. Without a GPU it only forks.
class bystander {
  public:
    bystander(int rank, bool on_gpu);
    ~bystander();
    // Ends it, and says how long it waited. Returns how often it had to wait too long or failed.
    int end();

  private:
    void run(int rank);

    const bool on_gpu_;
    std::atomic<bool> done_{false};
    std::atomic<int> wrong_{0};
    int number_ = 0;
    std::chrono::duration<double, std::micro> longest_{0};
    std::thread thread_;
};

}  // namespace gpu_test

// The same for programs that have no CUDA at hand, by dlsym(): a bystander on GPU `rank` modulo
// their number, and what end() returns. Null: no thread.
extern "C" {
void *bystander_begin(int rank);
int bystander_end(void *begun);
}
