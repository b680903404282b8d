#include "uct/cuda_nc/memory/quarantine.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <vector>

namespace cuda_nc::uct {
namespace {

struct held {
    region memory;
    void *object;  // null: the region
    void (*release)(void *) noexcept;
    process_id writer;
    message_of_peer message;
};

struct ward {
    std::mutex mutex;
    std::vector<held> all;
    std::atomic<size_t> number{0};
    std::chrono::steady_clock::time_point next_look;
};

ward &the_ward() noexcept {
    static auto *only = new ward;  // outlives every thread
    return *only;
}

void hold(const held &one) noexcept try {
    ward &here = the_ward();
    std::lock_guard<std::mutex> guard(here.mutex);
    here.all.push_back(one);
    here.number.store(here.all.size(), std::memory_order_relaxed);
} catch (const std::bad_alloc &) {
    // never used again
}

// Releases what `is_through` says; whether there was any.
template <class Condition>
bool release_if(Condition &&is_through) noexcept {
    ward &here = the_ward();
    if (here.number.load(std::memory_order_relaxed) == 0) {
        return false;
    }
    std::lock_guard<std::mutex> guard(here.mutex);
    const size_t before = here.all.size();
    for (size_t i = 0; i < here.all.size();) {
        held one = here.all[i];
        if (!is_through(one)) {
            ++i;
            continue;
        }
        here.all[i] = here.all.back();
        here.all.pop_back();
        if (one.object != nullptr) {
            one.release(one.object);
        } else {
            release_region(one.memory);
        }
    }
    here.number.store(here.all.size(), std::memory_order_relaxed);
    return here.all.size() != before;
}

}  // namespace

void quarantine(const region &memory, const process_id &writer, message_of_peer message) noexcept {
    hold({memory, nullptr, nullptr, writer, message});
}

void quarantine(void *object, void (*release)(void *) noexcept, const process_id &writer,
                message_of_peer message) noexcept {
    hold({{}, object, release, writer, message});
}

bool leave_quarantine(message_of_peer message) noexcept {
    return release_if([message](const held &one) {
        return one.message.number == message.number && one.message.peer == message.peer;
    });
}

void release_quarantined(bool now) noexcept {
    constexpr auto interval = std::chrono::milliseconds(200);
    ward &here = the_ward();
    if (here.number.load(std::memory_order_relaxed) == 0) {
        return;
    }
    {
        std::lock_guard<std::mutex> guard(here.mutex);
        auto time = std::chrono::steady_clock::now();
        if (!now && time < here.next_look) {
            return;
        }
        here.next_look = time + interval;
    }
    // To ask takes the system's time: of pieces that follow each other most are one process's.
    process_id asked;
    bool asked_is_gone = false;
    release_if([&](const held &one) {
        if (one.writer != asked) {
            asked = one.writer;
            asked_is_gone = is_gone(asked);
        }
        return asked_is_gone;
    });
}

size_t quarantined() noexcept {
    return the_ward().number.load(std::memory_order_relaxed);
}

}  // namespace cuda_nc::uct
