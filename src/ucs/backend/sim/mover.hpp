// The simulated GPU's mover: a thread that behaves as the kernel does where mistakes would show. It
// sees lines late and torn, its words become visible late, it moves several orders piece by piece
// in random order, and it leaves in every moment.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ucs/gpu/device.hpp"
#include "ucs/gpu/mover_desk.hpp"
#include "ucs/gpu/mover_stay.hpp"
#include "ucs/backend/sim/options.hpp"
#include "ucs/backend/sim/random.hpp"
#include "ucs/backend/sim/stream.hpp"

namespace cuda_nc::gpu::sim {

class sim_mover final : public mover_desk {
  public:
    // `on` and `all` outlive it. Null: no memory.
    static std::unique_ptr<sim_mover> make(device &on, environment &all,
                                           const options &how) noexcept;
    // The kernel leaves; orders that have not ended are abandoned.
    ~sim_mover() override;

  protected:
    bool is_usable() noexcept override;
    bool describe(const move_order &one, ticket which,
                  uint32_t (*words_p)[order_words]) noexcept override;
    ucs_status_t launch(const mover_launch &how) noexcept override;
    ucs_status_t ask_kernels() noexcept override;
    ucs_status_t launch_set(const uint32_t (*words)[order_words], size_t number,
                            ticket first) noexcept override;
    ucs_status_t ask_sets() noexcept override;

  private:
    struct launched {
        mover_launch how;
        size_t set = 0;                   // so many orders from how.first on, and no others
        bool late = false, dies = false;  // faults
    };
    class kernel;
    // An order. Its line has but words by which its parts are checked.
    struct described {
        layout_view source, target;
        const char *source_base;
        char *target_base;
        uint64_t packed_offset, length;
        bool into_own_memory;
    };
    static uint32_t word_of(const described &order, uint32_t which) noexcept;

    // A stream, and the thread that runs its launches one after the other.
    struct lane {
        std::mutex mutex;  // guards what follows
        std::condition_variable changed;
        std::deque<launched> queue;
        bool busy = false, stop = false;
        ucs_status_t status = UCS_OK;  // the first error is kept
        std::thread thread;

        ucs_status_t ask() noexcept;
        void end() noexcept;
    };
    // Owned through a pointer: a forked child, which does not have the threads, leaks it.
    struct runner {
        runner(environment &all_, int ordinal_) : all(all_), ordinal(ordinal_) {}
        void run(lane &own) noexcept;

        environment &all;
        const int ordinal;
        std::unique_ptr<memory> pinned;
        mover_memory *shared = nullptr;
        std::vector<described> orders{
            order_ring_size};  // by place; the CPU writes it before the line, or the set's launch
        // What the kernel has seen of the ring, which it may see once more.
        std::vector<order_line> seen{order_ring_size};
        lane kernels, sets;  // run side by side
    };

    // With the faults that strike it.
    ucs_status_t enqueue(lane &on, launched one) noexcept;

    sim_mover(const options &how, std::unique_ptr<runner> own) noexcept
        : mover_desk(how.mover_idle, how.mover_always, uint64_t{how.mover_away} * 1000),
          runner_(std::move(own)) {
        use(runner_->shared);
    }

    std::unique_ptr<runner> runner_;
};

}  // namespace cuda_nc::gpu::sim
