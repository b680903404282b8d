// Streams and events of the simulated GPU.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ucs/gpu/device.hpp"
#include "ucs/gpu/layout_pairs.hpp"
#include "ucs/backend/sim/address_space.hpp"
#include "ucs/backend/sim/faults.hpp"
#include "ucs/backend/sim/random.hpp"

namespace cuda_nc::gpu::sim {

// What all streams of a platform share.
struct environment {
    address_space space;
    fault_plan faults;
    unsigned delay = 0;  // microseconds
    uint64_t seed = 0;
    std::atomic<uint64_t> streams_made{0};
};

// Recordings are numbered; the state outlives the event while streams still refer to it.
struct mark_state {
    std::mutex mutex;
    std::condition_variable changed;
    uint64_t recorded = 0, reached = 0;
    ucs_status_t status = UCS_OK;  // of the work before the mark last reached

    void reach(uint64_t recording, ucs_status_t how) noexcept;
    ucs_status_t await(uint64_t recording) noexcept;
};

class sim_event final : public event {
  public:
    sim_event() : state_(std::make_shared<mark_state>()) {}

    ucs_status_t query() noexcept override;
    ucs_status_t synchronize() noexcept override;

    const std::shared_ptr<mark_state> &state() const noexcept { return state_; }

  private:
    std::shared_ptr<mark_state> state_;
};

class sim_graph;

// A stream; the first operation starts a thread that executes them.
class sim_stream final : public stream {
  public:
    sim_stream(environment &all, int ordinal);
    ~sim_stream() override;

    ucs_status_t launch(const transfer &work) noexcept override;
    ucs_status_t launch(const pipe_work *sides, size_t number,
                        size_t *launched_p) noexcept override;
    ucs_status_t launch(const pair_list &list) noexcept override;
    ucs_status_t copy(void *destination, const void *source, size_t length) noexcept override;
    ucs_status_t record(event &mark) noexcept override;
    ucs_status_t wait(event &mark) noexcept override;

    // From here on work goes to a graph, where events are refused. Null `end_capture()`: none was
    // begun.
    void begin_capture();
    std::shared_ptr<sim_graph> end_capture() noexcept;
    sim_graph *capture() const noexcept { return capture_.get(); }
    ucs_status_t launch(const std::shared_ptr<const sim_graph> &graph) noexcept;

  private:
    friend class sim_graph;
    enum class action : uint8_t { launch, pipe, list, copy, record, wait, fail, stay };

    struct operation {
        action what = action::launch;
        transfer work;                                      // launch
        pair_list list;                                     // list
        std::shared_ptr<const layout_pairs> made;           // of the list
        end_words ends;                                     // launch, list; as they were then
        std::vector<pipe_work> sides;                       // pipe
        std::shared_ptr<std::vector<layout_view>> layouts;  // of the sides
        char *destination = nullptr;                        // copy; the simulator's addresses
        const char *source = nullptr;
        size_t length = 0;
        std::vector<char> snapshot;        // copy: bytes of pageable memory
        std::shared_ptr<mark_state> mark;  // record, wait
        uint64_t recording = 0;
        std::shared_ptr<const void> of;  // the graph that the operation is part of
    };

    // Owned through a pointer: a forked child, which does not have the thread, leaks it.
    struct runner {
        runner(environment &all_, int ordinal_, uint64_t seed)
            : all(all_), ordinal(ordinal_), random(seed) {}

        void run() noexcept;
        ucs_status_t execute(const operation &one) noexcept;
        void pause(unsigned limit) noexcept;  // a random time of up to `limit` microseconds
        void stay() noexcept;

        environment &all;
        int ordinal;
        random_source random;
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<operation> queue;
        bool stop = false;
        std::thread thread;
    };

    ucs_status_t enqueue(operation &&one) noexcept;
    // A launch of any kind, after the injected faults.
    ucs_status_t enqueue_kernel(operation &&one) noexcept;
    ucs_status_t enqueue_mark(event &mark) noexcept;

    std::unique_ptr<runner> runner_;
    std::shared_ptr<sim_graph> capture_;
};

// What a stream did while it was captured.
class sim_graph {
  public:
    void keep(std::shared_ptr<void> what) { kept_.push_back(std::move(what)); }

  private:
    friend class sim_stream;
    std::vector<sim_stream::operation> operations_;
    std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace cuda_nc::gpu::sim
