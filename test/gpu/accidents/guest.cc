#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "accidents/cases.hpp"
#include "accidents/driver.hpp"

namespace gpu_test {
namespace {

// Longer than a kernel that stays may keep anybody waiting, on a busy machine too.
constexpr auto longest_wait = std::chrono::seconds(2);

void synchronise(int what) {
    if (what == 0) {
        DRIVER_CALL(cuCtxSynchronize);
    } else if (what == 1) {
        CUdeviceptr some = 0;
        DRIVER_CALL(cuMemAlloc, &some, size_t{1} << 20);
        DRIVER_CALL(cuMemFree, some);
    } else {
        const pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            throw std::runtime_error("fork fails");
        }
    }
}

// Does at random moments what waits for all kernels of the device, and forks.
class bystander {
  public:
    explicit bystander(const case_options &options)
        : on_gpu_(options.kind != "sim"), thread_([this, options] { run(options); }) {}
    ~bystander() { end(); }
    int end() {
        if (!thread_.joinable()) {
            return wrong_;
        }
        done_ = true;
        thread_.join();
        std::printf("%d synchronisations, the longest %.0f us\n", number_, longest_.count());
        return wrong_;
    }

  private:
    void run(const case_options &options) try {
        if (on_gpu_) {
            enter_gpu(options.rank);
        }
        std::mt19937 random(static_cast<unsigned>(options.rank + 1));
        while (!done_) {
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
            const int what = on_gpu_ ? static_cast<int>(random() % 16 == 0 ? 2 : random() % 2) : 2;
            const auto begin = std::chrono::steady_clock::now();
            synchronise(what);
            const std::chrono::duration<double, std::micro> took =
                std::chrono::steady_clock::now() - begin;
            longest_ = std::max(longest_, took);
            ++number_;
            if (on_gpu_ && took > longest_wait) {
                std::printf("WRONG synchronisation %d waits too long\n", what);
                ++wrong_;
            }
        }
    } catch (const std::exception &error) {
        std::printf("WRONG %s\n", error.what());
        ++wrong_;
    }

    const bool on_gpu_;
    std::atomic<bool> done_{false};
    std::atomic<int> wrong_{0};
    int number_ = 0;
    std::chrono::duration<double, std::micro> longest_{0};
    std::thread thread_;
};

}  // namespace

int run_guest(const case_options &options) {
    auto where = open_kind(options.kind, options.rank);
    strided small(*where, 16 << 10), large(*where, options.bytes);
    bystander other(options);
    int wrong = 0;
    for (int number = 0; number < options.count; ++number) {
        wrong += exchange(number % 4 == 3 ? large : small, options, number);
    }
    return wrong + other.end();
}

}  // namespace gpu_test
