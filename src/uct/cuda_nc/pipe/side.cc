#include "uct/cuda_nc/pipe/side.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "ucs/base/settings.hpp"
#include "uct/cuda_nc/memory/ipc_block.hpp"

namespace cuda_nc::uct {
namespace {

constexpr size_t state_bytes = 4096;
// No two sides share a line.
constexpr size_t report_bytes = (sizeof(gpu::pipe_report) + sizeof(uint64_t) + 127) / 128 * 128;
constexpr size_t side_bytes = pipe_words_bytes + state_bytes;
constexpr size_t most_sides = 512;  // of a GPU
static_assert(sizeof(gpu::pipe_state) <= state_bytes);

struct slab {
    std::unique_ptr<gpu::memory> memory, reports;
    gpu::ipc_handle handle;
    std::vector<pipe_side> sides;
};

struct pool {
    std::mutex mutex;
    std::vector<std::unique_ptr<slab>> slabs;
    std::vector<pipe_side *> idle;
    std::vector<std::unique_ptr<gpu::stream>> streams;
    std::unique_ptr<gpu::stream> aborts;
    size_t number = 0;  // of sides
    size_t streams_lent = 0;
};

std::atomic<size_t> lent{0};

pool &pool_of(int device) {
    static auto *all = new std::array<pool, max_devices>;  // outlives every thread
    return (*all)[static_cast<size_t>(device)];
}

ucs_status_t clear(gpu::device &where, gpu::memory &memory) {
    std::unique_ptr<gpu::stream> stream;
    std::unique_ptr<gpu::event> done;
    std::vector<char> zeros(memory.size());
    ucs_status_t status = where.create_stream(&stream);
    if (status == UCS_OK) {
        status = where.create_event(&done);
    }
    if (status == UCS_OK) {
        status = stream->copy(memory.address(), zeros.data(), zeros.size());
    }
    if (status == UCS_OK) {
        status = stream->record(*done);
    }
    return status == UCS_OK ? done->synchronize() : status;
}

// The caller holds the pool's lock.
bool add_slab(pool &to, int device) {
    gpu::device *where = gpu::platform::instance().get_device(device);
    if (where == nullptr || to.number >= most_sides || where->prepare_pipes() != UCS_OK) {
        return false;
    }
    const size_t bound = std::max<size_t>(config().staging_size / 32 / side_bytes, 4);
    const size_t number = std::min<size_t>(bound, to.number == 0 ? 32 : 96);
    auto made = std::make_unique<slab>();
    size_t offset;
    made->sides.reserve(number);
    to.slabs.reserve(to.slabs.size() + 1);
    to.idle.reserve(to.number + number);  // give_side() cannot fail
    if (where->allocate(in_ipc_blocks(number * side_bytes), &made->memory) != UCS_OK ||
        where->ipc_export(made->memory->address(), &made->handle, &offset) != UCS_OK ||
        where->allocate_pinned(number * report_bytes, &made->reports) != UCS_OK ||
        clear(*where, *made->memory) != UCS_OK) {
        return false;
    }
    char *reports = made->reports->address();
    std::memset(reports, 0, made->reports->size());
    for (size_t i = 0; i < number; ++i) {
        pipe_side side = {};
        side.device = device;
        side.words = made->memory->address() + i * pipe_words_bytes;
        side.words_offset = offset + i * pipe_words_bytes;
        side.handle = &made->handle;
        side.state = reinterpret_cast<gpu::pipe_state *>(
            made->memory->address() + number * pipe_words_bytes + i * state_bytes);
        side.report = reinterpret_cast<gpu::pipe_report *>(reports + i * report_bytes);
        side.abort_source =
            reinterpret_cast<uint64_t *>(reports + i * report_bytes + sizeof(gpu::pipe_report));
        side.sequence = gpu::pipe_sequence_step;
        made->sides.push_back(side);
    }
    for (pipe_side &side : made->sides) {
        to.idle.push_back(&side);
    }
    to.number += number;
    to.slabs.push_back(std::move(made));
    return true;
}

// Makes one where there is none. The caller holds the pool's lock.
bool has_idle_stream(pool &of, int device) {
    if (of.streams.empty()) {
        gpu::device *where = gpu::platform::instance().get_device(device);
        std::unique_ptr<gpu::stream> made;
        if (where == nullptr || where->create_stream(&made) != UCS_OK) {
            return false;
        }
        of.streams.reserve(of.streams.size() + of.streams_lent + 1);  // giving back cannot fail
        of.streams.push_back(std::move(made));
    }
    return true;
}

}  // namespace

pipe_side *take_side(int device) noexcept try {
    pool &from = pool_of(device);
    std::lock_guard<std::mutex> guard(from.mutex);
    if (from.idle.empty() && !add_slab(from, device)) {
        return nullptr;
    }
    pipe_side *side = from.idle.back();
    from.idle.pop_back();
    lent.fetch_add(1, std::memory_order_relaxed);
    return side;
} catch (const std::bad_alloc &) {
    return nullptr;
}

void give_side(pipe_side *back) noexcept {
    lent.fetch_sub(1, std::memory_order_relaxed);
    if (back->sequence >= last_sequence) {
        return;
    }
    pool &to = pool_of(back->device);
    std::lock_guard<std::mutex> guard(to.mutex);
    to.idle.push_back(back);
}

void retire_side(pipe_side *) noexcept {
    lent.fetch_sub(1, std::memory_order_relaxed);
}

std::shared_ptr<pipe_stream> take_stream(int device, bool *later_p) noexcept try {
    pool &from = pool_of(device);
    *later_p = false;
    auto made = std::make_shared<pipe_stream>(device);
    std::lock_guard<std::mutex> guard(from.mutex);
    if (!has_idle_stream(from, device)) {
        *later_p = from.streams_lent != 0;
        return nullptr;
    }
    made->stream_ = std::move(from.streams.back());
    made->lent_ = true;
    from.streams.pop_back();
    ++from.streams_lent;
    return made;
} catch (const std::bad_alloc &) {
    return nullptr;
}

bool has_stream(int device) noexcept try {
    pool &of = pool_of(device);
    std::lock_guard<std::mutex> guard(of.mutex);
    return of.streams_lent != 0 || has_idle_stream(of, device);
} catch (const std::bad_alloc &) {
    return false;
}

pipe_stream::~pipe_stream() {
    if (!lent_) {
        return;
    }
    try {  // not around the body: a destructor would throw again what is caught there
        pool &to = pool_of(device_);
        std::lock_guard<std::mutex> guard(to.mutex);
        --to.streams_lent;
        if (stream_ != nullptr && !spoilt_) {
            to.streams.push_back(std::move(stream_));
        }
    } catch (const std::bad_alloc &) {
        // it ends here
    }
}

ucs_status_t write_abort(pipe_side &side, uint64_t sequence) noexcept {
    pool &of = pool_of(side.device);
    std::lock_guard<std::mutex> guard(of.mutex);
    gpu::device *where = gpu::platform::instance().get_device(side.device);
    if (of.aborts == nullptr && (where == nullptr || where->create_stream(&of.aborts) != UCS_OK)) {
        return UCS_ERR_NO_RESOURCE;
    }
    *side.abort_source = sequence;
    ucs_status_t status = of.aborts->copy(&side.state->abort, side.abort_source, sizeof(sequence));
    if (status != UCS_OK) {
        of.aborts.reset();
    }
    return status;
}

size_t sides_lent() noexcept {
    return lent.load(std::memory_order_relaxed);
}

}  // namespace cuda_nc::uct
