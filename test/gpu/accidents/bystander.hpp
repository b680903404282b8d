// What else a program may do on its GPU while messages go on.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

namespace gpu_test {

// A thread that computes at random moments, does what waits for all kernels of the device or may
// (it synchronises, allocates, frees, uses the legacy stream, makes and destroys contexts), and
// forks. Without a GPU it only forks.
class bystander {
  public:
    bystander(int rank, bool on_gpu, bool makes_contexts);
    ~bystander();
    // Ends it, and says how long it waited. Returns how often it had to wait too long or failed.
    int end();

  private:
    void run(int rank);
    int next_kind(std::mt19937 *random) const;

    const bool on_gpu_, makes_contexts_;
    std::atomic<bool> done_{false};
    std::atomic<int> wrong_{0};
    void note(int what, float waited, std::mt19937 *random);

    // Of each kind; us.
    std::array<std::vector<float>, 5> waits_;
    std::array<float, 5> longest_{};
    std::array<size_t, 5> numbers_{};
    std::thread thread_;
};

}  // namespace gpu_test

// The same for programs that have no CUDA at hand, by dlsym(): a bystander on GPU `rank` modulo
// their number, and what end() returns. Null: no thread.
extern "C" {
void *bystander_begin(int rank);
int bystander_end(void *begun);
}
