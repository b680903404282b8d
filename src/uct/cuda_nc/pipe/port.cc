#include "uct/cuda_nc/pipe/port.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "ucs/base/bits.hpp"
#include "ucs/base/settings.hpp"
#include "uct/cuda_nc/memory/ipc_block.hpp"

namespace cuda_nc::uct {
namespace {

constexpr size_t state_bytes = 4096;
// No two ports share a line.
constexpr size_t report_bytes = round_up(sizeof(gpu::pipe_report) + sizeof(uint64_t), size_t{128});
constexpr size_t port_bytes = pipe_words_bytes + state_bytes;
constexpr size_t most_ports = 512;  // of a GPU
static_assert(sizeof(gpu::pipe_state) <= state_bytes);

struct slab {
    std::unique_ptr<gpu::memory> memory, reports;
    gpu::ipc_handle handle;
    std::vector<pipe_port> ports;
};

struct pool {
    std::mutex mutex;
    std::vector<std::unique_ptr<slab>> slabs;
    std::vector<pipe_port *> idle;
    std::unique_ptr<gpu::stream> aborts;
    size_t number = 0;  // of its ports
    bool was_used = false;
};

std::atomic<size_t> lent{0};

pool &pool_of(int device) {
    static auto *all = new std::array<pool, max_devices>;  // outlives every thread
    return (*all)[static_cast<size_t>(device)];
}

// By `stream`, or by one of its own.
ucs_status_t clear(gpu::device &where, gpu::stream *stream, char *bytes, size_t size) {
    std::unique_ptr<gpu::stream> own;
    std::unique_ptr<gpu::event> done;
    static const char zeros[64 << 10] = {};  // pages that no process fills
    ucs_status_t status = stream == nullptr ? where.create_stream(&own) : UCS_OK;
    if (status == UCS_OK) {
        stream = stream == nullptr ? own.get() : stream;
        status = where.create_event(&done);
    }
    size_t cleared = std::min(sizeof(zeros), size);
    if (status == UCS_OK) {
        status = stream->copy(bytes, zeros, cleared);
    }
    while (cleared < size && status == UCS_OK) {  // few calls, of 5 to 10 us each
        const size_t more = std::min(cleared, size - cleared);
        status = stream->copy_gpu_memory(bytes + cleared, bytes, more);
        cleared += more;
    }
    if (status == UCS_OK) {
        status = stream->record(*done);
    }
    return status == UCS_OK ? done->synchronize() : status;
}

// The caller holds the pool's lock.
bool add_slab(pool &to, int device) {
    gpu::device *where = gpu::platform::instance().get_device(device);
    if (where == nullptr || to.number >= most_ports) {
        return false;
    }
    const size_t bound = std::max<size_t>(config().staging_size / 32 / port_bytes, 4);
    const size_t number = std::min<size_t>(bound, to.number == 0 ? 32 : 96);
    auto made = std::make_unique<slab>();
    size_t offset;
    made->ports.reserve(number);
    to.slabs.reserve(to.slabs.size() + 1);
    to.idle.reserve(to.number + number);  // release_port() cannot fail
    if (where->allocate(in_ipc_blocks(number * port_bytes), &made->memory) != UCS_OK ||
        where->ipc_export(made->memory->address(), &made->handle, &offset) != UCS_OK ||
        where->allocate_pinned(number * report_bytes, &made->reports) != UCS_OK ||
        clear(*where, nullptr, made->memory->address(), made->memory->size()) != UCS_OK) {
        return false;
    }
    char *reports = made->reports->address();
    std::memset(reports, 0, made->reports->size());
    for (size_t i = 0; i < number; ++i) {
        pipe_port port = {};
        port.device = device;
        port.words = made->memory->address() + i * pipe_words_bytes;
        port.words_offset = offset + i * pipe_words_bytes;
        port.handle = &made->handle;
        port.state = reinterpret_cast<gpu::pipe_state *>(
            made->memory->address() + number * pipe_words_bytes + i * state_bytes);
        port.report = reinterpret_cast<gpu::pipe_report *>(reports + i * report_bytes);
        port.abort_source =
            reinterpret_cast<uint64_t *>(reports + i * report_bytes + sizeof(gpu::pipe_report));
        port.sequence = gpu::pipe_sequence_step;
        made->ports.push_back(port);
    }
    for (pipe_port &port : made->ports) {
        to.idle.push_back(&port);
    }
    to.number += number;
    to.slabs.push_back(std::move(made));
    return true;
}

// Its numbers are used up, which takes a peer that chooses the last ones: they begin again. No
// kernel writes to it; aborts that are under way come before. False: it is lost. The caller holds
// the pool's lock.
bool begin_again(pool &of, pipe_port &port) noexcept {
    gpu::device *where = gpu::platform::instance().get_device(port.device);
    gpu::stream *const aborts = of.aborts.get();
    if (where == nullptr || clear(*where, aborts, port.words, pipe_words_bytes) != UCS_OK ||
        clear(*where, aborts, reinterpret_cast<char *>(port.state), state_bytes) != UCS_OK) {
        return false;
    }
    std::memset(static_cast<void *>(port.report), 0, report_bytes);
    port.sequence = gpu::pipe_sequence_step;
    return true;
}

}  // namespace

pipe_port *acquire_port(int device, port_use use) noexcept try {
    pool &from = pool_of(device);
    std::lock_guard<std::mutex> guard(from.mutex);
    const auto left_for_pulls = [&from] { return std::min<size_t>(from.number / 8, 64); };
    const auto is_short = [&] {
        return from.idle.size() <= (use == port_use::pipe ? left_for_pulls() : 0);
    };
    if (is_short() && (!add_slab(from, device) || is_short())) {
        return nullptr;
    }
    pipe_port *port = from.idle.back();
    from.idle.pop_back();
    from.was_used = true;
    lent.fetch_add(1, std::memory_order_relaxed);
    return port;
} catch (const std::bad_alloc &) {
    return nullptr;
}

bool has_ports(int device) noexcept try {
    pool &from = pool_of(device);
    std::lock_guard<std::mutex> guard(from.mutex);
    return from.number != 0 || add_slab(from, device);
} catch (const std::bad_alloc &) {
    return false;
}

bool drop_unused_ports(int device) noexcept {
    pool &of = pool_of(device);
    std::lock_guard<std::mutex> guard(of.mutex);
    if (!of.was_used) {
        of.idle.clear();
        of.slabs.clear();
        of.number = 0;
    }
    return !of.was_used;
}

void release_port(pipe_port *back) noexcept {
    lent.fetch_sub(1, std::memory_order_relaxed);
    pool &to = pool_of(back->device);
    std::lock_guard<std::mutex> guard(to.mutex);
    if (back->sequence < last_sequence || begin_again(to, *back)) {
        to.idle.push_back(back);
    }
}

void retire_port(pipe_port *) noexcept {
    lent.fetch_sub(1, std::memory_order_relaxed);
}

void quarantine_port(pipe_port *port, const process_id &writer, message_of_peer message) noexcept {
    quarantine(
        port, [](void *held) noexcept { release_port(static_cast<pipe_port *>(held)); }, writer,
        message);
}

ucs_status_t write_abort(pipe_port &port, uint64_t sequence) noexcept {
    pool &of = pool_of(port.device);
    std::lock_guard<std::mutex> guard(of.mutex);
    gpu::device *where = gpu::platform::instance().get_device(port.device);
    if (of.aborts == nullptr && (where == nullptr || where->create_stream(&of.aborts) != UCS_OK)) {
        return UCS_ERR_NO_RESOURCE;
    }
    // An earlier copy for this port may be under way: it may bring either number.
    __atomic_store_n(port.abort_source, sequence, __ATOMIC_RELAXED);
    ucs_status_t status = of.aborts->copy(&port.state->abort, port.abort_source, sizeof(sequence));
    if (status != UCS_OK) {
        of.aborts.reset();
    }
    return status;
}

size_t ports_lent() noexcept {
    return lent.load(std::memory_order_relaxed);
}

}  // namespace cuda_nc::uct
