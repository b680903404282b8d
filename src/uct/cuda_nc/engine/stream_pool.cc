#include "uct/cuda_nc/engine/stream_pool.hpp"

#include <array>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "uct/cuda_nc/engine/admission.hpp"

namespace cuda_nc::uct {
namespace {

struct pool {
    std::mutex mutex;
    std::vector<std::unique_ptr<gpu::stream>> idle;
    size_t num_lent = 0;
    bool was_used = false;
};

pool &pool_of(int device) {
    static auto *all = new std::array<pool, max_devices>;  // outlives every thread
    return (*all)[static_cast<size_t>(device)];
}

// Makes a stream where there is none. The caller holds the pool's lock.
bool has_idle(pool &of, int device) {
    if (of.idle.empty()) {
        gpu::device *where = gpu::platform::instance().get_device(device);
        std::unique_ptr<gpu::stream> made;
        if (where == nullptr || where->create_stream(&made) != UCS_OK) {
            return false;
        }
        of.idle.reserve(of.idle.size() + of.num_lent + 1);  // returning a stream cannot fail
        of.idle.push_back(std::move(made));
    }
    return true;
}

}  // namespace

std::shared_ptr<pooled_stream> acquire_stream(int device, bool *later_p) noexcept try {
    pool &from = pool_of(device);
    *later_p = false;
    auto made = std::make_shared<pooled_stream>(device);
    std::lock_guard<std::mutex> guard(from.mutex);
    if (!has_idle(from, device)) {
        *later_p = from.num_lent != 0;
        return nullptr;
    }
    made->stream_ = std::move(from.idle.back());
    made->lent_ = true;
    from.idle.pop_back();
    ++from.num_lent;
    from.was_used = true;
    return made;
} catch (const std::bad_alloc &) {
    return nullptr;
}

bool has_stream(int device) noexcept try {
    pool &of = pool_of(device);
    std::lock_guard<std::mutex> guard(of.mutex);
    return of.num_lent != 0 || has_idle(of, device);
} catch (const std::bad_alloc &) {
    return false;
}

bool drop_unused_streams(int device) noexcept {
    pool &of = pool_of(device);
    std::lock_guard<std::mutex> guard(of.mutex);
    if (!of.was_used) {
        of.idle.clear();
    }
    return !of.was_used;
}

pooled_stream::~pooled_stream() {
    if (!lent_) {
        return;
    }
    try {  // not around the body: a destructor would throw again what is caught there
        pool &to = pool_of(device_);
        std::lock_guard<std::mutex> guard(to.mutex);
        --to.num_lent;
        if (stream_ != nullptr && !spoilt_) {
            to.idle.push_back(std::move(stream_));
        }
    } catch (const std::bad_alloc &) {
        // the stream ends here
    }
}

}  // namespace cuda_nc::uct
