#include "accidents/bystander.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "accidents/driver.hpp"

namespace gpu_test {
namespace {

// Longer than a kernel that stays may keep anybody waiting, on a busy machine too.
constexpr auto longest_wait = std::chrono::seconds(2);

constexpr const char *names[] = {"cuCtxSynchronize", "cuMemAlloc, cuMemFree",
                                 "a kernel on the legacy stream", "cuCtxCreate, cuCtxDestroy",
                                 "fork"};
enum kind { context, allocation, legacy_stream, other_context, child };

void make_other_context(CUdevice device) {
    CUcontext made;
#if CUDA_VERSION >= 13000
    DRIVER_CALL(cuCtxCreate, &made, nullptr, 0, device);
#else
    DRIVER_CALL(cuCtxCreate, &made, 0, device);
#endif
    DRIVER_CALL(cuCtxDestroy, made);
}

void make_child() {
    const pid_t made = fork();
    if (made == 0) {
        _exit(0);
    }
    int status = 1;
    if (made < 0 || waitpid(made, &status, 0) != made || status != 0) {
        throw std::runtime_error("fork fails");
    }
}

void synchronise(kind what, CUdevice device, computation *beside) {
    CUdeviceptr some = 0;
    switch (what) {
        case context:
            DRIVER_CALL(cuCtxSynchronize);
            break;
        case allocation:
            DRIVER_CALL(cuMemAlloc, &some, size_t{1} << 20);
            DRIVER_CALL(cuMemFree, some);
            break;
        case legacy_stream:
            beside->launch(std::chrono::nanoseconds(0), CU_STREAM_LEGACY);
            DRIVER_CALL(cuStreamSynchronize, CU_STREAM_LEGACY);
            break;
        case other_context:
            make_other_context(device);
            break;
        case child:
            make_child();
    }
}

}  // namespace

bystander::bystander(int rank, bool on_gpu, bool makes_contexts)
    : on_gpu_(on_gpu), makes_contexts_(makes_contexts), thread_([this, rank] { run(rank); }) {}

bystander::~bystander() {
    end();
}

int bystander::end() {
    if (!thread_.joinable()) {
        return wrong_;
    }
    done_ = true;
    thread_.join();
    for (size_t what = 0; what < waits_.size(); ++what) {
        std::vector<float> &all = waits_[what];
        std::sort(all.begin(), all.end());
        if (!all.empty()) {
            std::printf(
                "%zu times %s: us beyond its own kernels: median %.0f, 99 %% %.0f, most "
                "%.0f\n",
                numbers_[what], names[what], all[all.size() / 2], all[all.size() * 99 / 100],
                longest_[what]);
        }
    }
    return wrong_;
}

int bystander::next_kind(std::mt19937 *random) const {
    if (!on_gpu_) {
        return child;
    }
    const unsigned number = (*random)() % 512;
    return number == 0 && makes_contexts_ ? other_context
           : number < 32                  ? child
                                          : static_cast<int>(number % 3);
}

// Of very many some are kept, so that the process does not grow for hours.
void bystander::note(int what, float waited, std::mt19937 *random) {
    constexpr size_t most = 1 << 16;
    std::vector<float> &all = waits_[size_t(what)];
    longest_[size_t(what)] = std::max(longest_[size_t(what)], waited);
    if (all.size() < most) {
        all.push_back(waited);
    } else {
        all[(*random)() % most] = waited;
    }
    ++numbers_[size_t(what)];
}

void bystander::run(int rank) try {
    using clock = std::chrono::steady_clock;
    std::optional<computation> beside;
    CUdevice device = 0;
    if (on_gpu_) {
        device = enter_gpu(rank);
        beside.emplace();
    }
    std::mt19937 random(static_cast<unsigned>(rank + 1));
    clock::time_point computed;  // when its kernels should have ended
    while (!done_) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
        const int what = next_kind(&random);
        if (beside && random() % 2 == 0) {
            const std::chrono::microseconds length(random() % 1000);
            beside->launch(length);
            computed = std::max(computed, clock::now()) + length;
        }
        const auto begin = clock::now();
        synchronise(kind(what), device, beside ? &*beside : nullptr);
        const auto end = clock::now();
        const auto due = what == child ? begin : std::max(begin, computed);
        const std::chrono::duration<float, std::micro> waited = end - due;
        note(what, std::max(waited.count(), 0.0f), &random);
        if (on_gpu_ && end - begin > longest_wait) {
            std::printf("WRONG %s waits too long\n", names[what]);
            ++wrong_;
        }
    }
} catch (const std::exception &error) {
    std::printf("WRONG %s\n", error.what());
    ++wrong_;
}

}  // namespace gpu_test

void *bystander_begin(int rank) try {
    return new gpu_test::bystander(rank, true, false);
} catch (const std::exception &) {
    return nullptr;
}

int bystander_end(void *begun) {
    auto *one = static_cast<gpu_test::bystander *>(begun);
    const int wrong = one->end();
    delete one;
    return wrong;
}
