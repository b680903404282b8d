#include "accidents/bystander.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>

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
    } else if (what == 2) {
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

}  // namespace

bystander::bystander(int rank, bool on_gpu)
    : on_gpu_(on_gpu), thread_([this, rank] { run(rank); }) {}

bystander::~bystander() {
    end();
}

int bystander::end() {
    if (!thread_.joinable()) {
        return wrong_;
    }
    done_ = true;
    thread_.join();
    std::printf("%d synchronisations, the longest %.0f us\n", number_, longest_.count());
    return wrong_;
}

void bystander::run(int rank) try {
    std::optional<computation> beside;
    if (on_gpu_) {
        enter_gpu(rank);
        beside.emplace();
    }
    std::mt19937 random(static_cast<unsigned>(rank + 1));
    while (!done_) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
        const int what = on_gpu_ ? static_cast<int>(random() % 16 == 0 ? 2 : random() % 2) : 2;
        if (beside && random() % 2 == 0) {
            beside->launch(std::chrono::microseconds(random() % 1000));
        }
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

}  // namespace gpu_test

void *bystander_begin(int rank) try {
    return new gpu_test::bystander(rank, true);
} catch (const std::exception &) {
    return nullptr;
}

int bystander_end(void *begun) {
    auto *one = static_cast<gpu_test::bystander *>(begun);
    const int wrong = one->end();
    delete one;
    return wrong;
}
