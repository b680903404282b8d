#include "ucs/backend/sim/stream.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "ucs/base/blocked_signals.hpp"
#include "ucs/base/log.hpp"
#include "ucs/backend/backends.hpp"
#include "ucs/backend/sim/execute.hpp"
#include "ucs/backend/sim/pipe.hpp"

namespace cuda_nc::gpu::sim {
namespace {

constexpr auto stuck_for = std::chrono::seconds(5);

// A copy of one aligned word arrives whole: kernels that run meanwhile may wait for it.
void copy_bytes(char *destination, const char *source, size_t length) noexcept {
    const uintptr_t both =
        reinterpret_cast<uintptr_t>(destination) | reinterpret_cast<uintptr_t>(source);
    if (length != sizeof(uint64_t) || both % sizeof(uint64_t) != 0) {
        std::memmove(destination, source, length);
        return;
    }
    uint64_t word = __atomic_load_n(reinterpret_cast<const uint64_t *>(source), __ATOMIC_ACQUIRE);
    __atomic_store_n(reinterpret_cast<uint64_t *>(destination), word, __ATOMIC_RELEASE);
}

void tell_end(const end_words &ends, ucs_status_t status) noexcept {
    for (unsigned i = 0; i < ends.count && status == UCS_OK; ++i) {
        __atomic_store_n(ends.words + i, ends.value, __ATOMIC_RELEASE);
    }
}

mark_state &state_of(event &mark) noexcept {
    return *static_cast<sim_event &>(mark).state();
}

}  // namespace

void mark_state::reach(uint64_t recording, ucs_status_t how) noexcept {
    std::lock_guard<std::mutex> guard(mutex);
    if (recording > reached) {
        reached = recording;
        status = how;
        changed.notify_all();
    }
}

ucs_status_t mark_state::await(uint64_t recording) noexcept {
    std::unique_lock<std::mutex> guard(mutex);
    changed.wait(guard, [&] { return reached >= recording; });
    return status;
}

ucs_status_t sim_event::query() noexcept {
    if (forked()) {
        return UCS_ERR_IO_ERROR;
    }
    std::lock_guard<std::mutex> guard(state_->mutex);
    return state_->reached == state_->recorded ? state_->status : UCS_INPROGRESS;
}

ucs_status_t sim_event::synchronize() noexcept {
    if (forked()) {
        return UCS_ERR_IO_ERROR;
    }
    uint64_t recording;
    {
        std::lock_guard<std::mutex> guard(state_->mutex);
        recording = state_->recorded;
    }
    return state_->await(recording);
}

sim_stream::sim_stream(environment &all, int ordinal) {
    uint64_t number = all.streams_made.fetch_add(1, std::memory_order_relaxed);
    runner_ = std::make_unique<runner>(all, ordinal, all.seed * 1000003 + number);
}

sim_stream::~sim_stream() {
    if (forked()) {
        [[maybe_unused]] runner *left_behind = runner_.release();
        return;
    }
    {
        std::lock_guard<std::mutex> guard(runner_->mutex);
        runner_->stop = true;
        runner_->changed.notify_all();
    }
    if (runner_->thread.joinable()) {
        runner_->thread.join();
    }
}

ucs_status_t sim_stream::enqueue(operation &&one) noexcept {
    if (forked()) {
        return UCS_ERR_IO_ERROR;
    }
    try {
        if (capture_ != nullptr) {
            capture_->operations_.push_back(std::move(one));
            return UCS_OK;
        }
        std::lock_guard<std::mutex> guard(runner_->mutex);
        if (!runner_->thread.joinable()) {
            all_signals_blocked blocked;
            runner_->thread = std::thread([runner = runner_.get()] { runner->run(); });
        }
        runner_->queue.push_back(std::move(one));
        runner_->changed.notify_all();
        return UCS_OK;
    } catch (const std::bad_alloc &) {
        return UCS_ERR_NO_MEMORY;
    } catch (const std::system_error &error) {
        nc_error("simulated GPU: no thread for a stream: %s", error.what());
        return UCS_ERR_IO_ERROR;
    }
}

ucs_status_t sim_stream::enqueue_kernel(operation &&one) noexcept {
    fault_plan &faults = runner_->all.faults;
    bool refused = faults.strikes(fault::launch), failing = faults.strikes(fault::kernel);
    bool stuck = faults.strikes(fault::stuck), not_loaded = faults.strikes(fault::load);
    if (refused) {
        return UCS_ERR_IO_ERROR;
    }
    if (not_loaded) {
        return UCS_ERR_NO_MEMORY;
    }
    if (stuck || failing) {
        one.what = stuck ? action::stay : action::fail;
    }
    return enqueue(std::move(one));
}

ucs_status_t sim_stream::launch(const transfer &work) noexcept {
    if (work.length == 0) {
        return UCS_OK;
    }
    operation one;
    one.what = action::launch;
    one.work = work;
    if (work.ends != nullptr) {  // as on a GPU: large grids write no words
        constexpr uint64_t of_one = 2048;
        const uint64_t words = (work.length - 1) / of_one + 1;
        work.ends->count = words <= end_words::most ? static_cast<unsigned>(words) : 0;
        one.ends = *work.ends;
    }
    return enqueue_kernel(std::move(one));
}

ucs_status_t sim_stream::launch(const pipe_work *sides, size_t number, size_t *launched_p) noexcept
    try {
    if (number == 0 ||
        !std::all_of(sides, sides + number, [](const pipe_work &one) { return valid(one); })) {
        return UCS_ERR_INVALID_PARAM;
    }
    size_t kernels = 0;
    while (kernels < std::min<size_t>(number, max_pipe_sides) && !sides[kernels].copies) {
        ++kernels;
    }
    *launched_p = std::max<size_t>(kernels, 1);
    operation one;
    one.what = action::pipe;
    one.sides.assign(sides, sides + *launched_p);
    one.layouts = std::make_shared<std::vector<layout_view>>();
    one.layouts->reserve(2 * *launched_p);
    auto keep = [&one](const layout_view **layout_p) {
        if (*layout_p != nullptr) {
            one.layouts->push_back(**layout_p);
            *layout_p = &one.layouts->back();
        }
    };
    for (pipe_work &side : one.sides) {
        keep(&side.layout);
        keep(&side.source);
    }
    return enqueue_kernel(std::move(one));
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

ucs_status_t sim_stream::launch(const pair_list &list) noexcept {
    if (list.count == 0) {
        return UCS_OK;
    }
    if (list.pairs == nullptr && list.made == nullptr) {
        return UCS_ERR_INVALID_PARAM;
    }
    operation one;
    one.what = action::list;
    one.list = list;
    if (list.made != nullptr) {
        try {
            one.made = std::make_shared<layout_pairs>(*list.made);
        } catch (const std::bad_alloc &) {
            return UCS_ERR_NO_MEMORY;
        }
        one.list.made = one.made.get();
    }
    if (list.ends != nullptr) {  // as on a GPU: long lists write no words
        constexpr size_t longest = 256;
        list.ends->count =
            list.count > longest
                ? 0
                : static_cast<unsigned>(std::min<size_t>(list.count, end_words::most));
        one.ends = *list.ends;
    }
    return enqueue_kernel(std::move(one));
}

ucs_status_t sim_stream::copy(void *destination, const void *source, size_t length) noexcept {
    if (length == 0) {
        return UCS_OK;
    }
    if (forked() || runner_->all.faults.strikes(fault::copy)) {
        return UCS_ERR_IO_ERROR;
    }
    const address_space &space = runner_->all.space;
    operation one;
    one.what = action::copy;
    one.length = length;
    region from, to;
    bool known_source = space.find(source, length, &from);
    bool known_destination = space.find(destination, length, &to);
    if ((!known_source && space.query(source).kind != memory_kind::host) ||
        (!known_destination && space.query(destination).kind != memory_kind::host)) {
        nc_error("simulated GPU %d: a copy of %zu bytes from %p to %p leaves its allocation",
                 runner_->ordinal, length, source, destination);
        return UCS_ERR_IO_ERROR;
    }
    try {
        if (known_source) {
            one.source = from.at(reinterpret_cast<uintptr_t>(source));
        } else {
            auto *bytes = static_cast<const char *>(source);
            one.snapshot.assign(bytes, bytes + length);
        }
        if (known_destination) {
            one.destination = to.at(reinterpret_cast<uintptr_t>(destination));
            return enqueue(std::move(one));
        }
        one.destination = static_cast<char *>(destination);
        if (capture_ != nullptr) {
            return UCS_ERR_UNSUPPORTED;  // it would have to wait
        }
        sim_event done;
        ucs_status_t status = enqueue(std::move(one));
        if (status == UCS_OK) {
            status = enqueue_mark(done);
        }
        return status != UCS_OK ? status : done.synchronize();
    } catch (const std::bad_alloc &) {
        return UCS_ERR_NO_MEMORY;
    }
}

void sim_stream::begin_capture() {
    capture_ = std::make_shared<sim_graph>();
}

std::shared_ptr<sim_graph> sim_stream::end_capture() noexcept {
    return std::exchange(capture_, nullptr);
}

ucs_status_t sim_stream::launch(const std::shared_ptr<const sim_graph> &graph) noexcept try {
    for (const operation &one : graph->operations_) {
        operation copied = one;
        copied.of = graph;
        const ucs_status_t status = enqueue(std::move(copied));
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

ucs_status_t sim_stream::record(event &mark) noexcept {
    if (capture_ != nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    return forked() || runner_->all.faults.strikes(fault::mark) ? UCS_ERR_IO_ERROR
                                                                : enqueue_mark(mark);
}

ucs_status_t sim_stream::enqueue_mark(event &mark) noexcept {
    mark_state &state = state_of(mark);
    operation one;
    one.what = action::record;
    one.mark = static_cast<sim_event &>(mark).state();
    {
        std::lock_guard<std::mutex> guard(state.mutex);
        one.recording = ++state.recorded;
    }
    uint64_t recording = one.recording;
    ucs_status_t status = enqueue(std::move(one));
    if (status != UCS_OK) {
        state.reach(recording, status);
    }
    return status;
}

ucs_status_t sim_stream::wait(event &mark) noexcept {
    if (capture_ != nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (forked()) {
        return UCS_ERR_IO_ERROR;
    }
    mark_state &state = state_of(mark);
    operation one;
    one.what = action::wait;
    one.mark = static_cast<sim_event &>(mark).state();
    {
        std::lock_guard<std::mutex> guard(state.mutex);
        one.recording = state.recorded;
    }
    return enqueue(std::move(one));
}

void sim_stream::runner::pause(unsigned limit) noexcept {
    uint64_t nanoseconds = limit == 0 ? 0 : random.up_to(uint64_t(limit) * 1000);
    nanoseconds = static_cast<uint64_t>(static_cast<double>(nanoseconds) * all.faults.slow());
    if (nanoseconds < 1000) {
        sched_yield();
        return;
    }
    timespec time = {static_cast<time_t>(nanoseconds / 1000000000),
                     static_cast<long>(nanoseconds % 1000000000)};
    nanosleep(&time, nullptr);
}

void sim_stream::runner::stay() noexcept {
    // By the system clock: sanitizers do not know waits by other clocks.
    auto end = std::chrono::system_clock::now() + stuck_for;
    std::unique_lock<std::mutex> guard(mutex);
    changed.wait_until(guard, end, [] { return false; });
}

ucs_status_t sim_stream::runner::execute(const operation &one) noexcept {
    switch (one.what) {
        case action::launch:
            return sim::execute(one.work, ordinal, all.space, random,
                                [this] { pause(all.delay / 4); });
        case action::pipe:
            try {
                return sim::execute(one.sides, ordinal, all.space, random,
                                    [this] { pause(all.delay / 4); });
            } catch (const std::bad_alloc &) {
                return UCS_ERR_NO_MEMORY;
            }
        case action::list:
            return sim::execute(one.list, ordinal, all.space, random,
                                [this] { pause(all.delay / 4); });
        case action::copy:
            copy_bytes(one.destination, one.source != nullptr ? one.source : one.snapshot.data(),
                       one.length);
            return UCS_OK;
        case action::wait:
            return one.mark->await(one.recording);
        case action::stay:
            stay();
            return UCS_ERR_IO_ERROR;
        case action::fail:
        case action::record:
            break;
    }
    return UCS_ERR_IO_ERROR;
}

void sim_stream::runner::run() noexcept {
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // nanoseconds: delays are short
    ucs_status_t status = UCS_OK;                     // the first error is kept
    std::unique_lock<std::mutex> guard(mutex);
    for (;;) {
        changed.wait(guard, [this] { return stop || !queue.empty(); });
        if (queue.empty()) {
            return;
        }
        operation one = std::move(queue.front());
        queue.pop_front();
        guard.unlock();
        pause(one.what == action::record ? all.delay / 4 : all.delay);
        if (one.what == action::record) {
            one.mark->reach(one.recording, status);
        } else if (status == UCS_OK) {
            status = execute(one);
            tell_end(one.ends, status);
        }
        guard.lock();
    }
}

}  // namespace cuda_nc::gpu::sim
