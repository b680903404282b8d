// Which work of an interface may start on a GPU, in the order of its messages, and with which other
// work it shares a launch. Used with UCX's worker locked; never waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "ucs/base/tick_clock.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/gpu/order_ring.hpp"
#include "uct/cuda_nc/engine/message_owner.hpp"
#include "uct/cuda_nc/engine/progress_hook.hpp"
#include "uct/cuda_nc/engine/shared_launches.hpp"

namespace cuda_nc::uct {

class scheduler {
  public:
    scheduler(message_owner &messages, progress_hook &progress) noexcept
        : messages_(messages), progress_(progress) {}

    enum class admission : uint8_t {
        admitted,  // end_admission() is owed
        waits,     // in line: progress_waiting() looks at the message again
        refused    // its resources have not come for a second
    };
    // Channels for the kernel of one message, and its resources. It waits where too many channels
    // are in flight, or an earlier message waits. Channels that other workers hold are not waited
    // for long: their owner may never be progressed again.
    admission admit(launch_client &client, gpu::direction dir, unsigned channels) noexcept;
    void end_admission(int device, gpu::direction dir, unsigned channels) noexcept;
    // The message waits in line no more.
    void stop_waiting(uint64_t message) noexcept;

    // Admitted work is offered to its GPU's mover with the next launch_all(), or a give_early()
    // before it; end_order() is owed. It waits in line only while the mover has as many of this
    // interface's orders as it can use, `most_orders`: where its ring is full the others would be
    // launched, at several times the price. Refused: no memory.
    static constexpr unsigned most_orders = gpu::order_ring_size * 3 / 4;  // of one interface
    // Whether it is of use to ask a mover to take work of `length` bytes: it takes few long orders
    // at a time, and each that it refuses costs the CPU time.
    bool may_take(uint64_t length) const noexcept {
        return length <= gpu::longest_of_many ||
               launches_.number_under_way() < gpu::most_together / length;
    }
    admission order(launch_client &ready) noexcept;
    void end_order(int device) noexcept;
    // The admitted work is launched with the next launch_all(), which comes at the end of each call
    // of progress. False: no memory.
    bool launch(launch_client &admitted) noexcept;
    // The work is stopped before it began.
    void cancel(const launch_client &stopped) noexcept { launches_.remove(stopped); }
    // The kernel of launched work has left, or the order has ended.
    void kernel_left(const launch_client &ended) noexcept { launches_.left(ended); }
    void give_early() noexcept { launches_.give_early(); }
    bool has_room_for_others() const noexcept { return launches_.has_room_for_others(); }
    void launch_all() noexcept;

    // Both say how much happened. They look at work that has ended on the GPU, and at the first in
    // line if room has come free; `all`: at all kernels in flight, because one may have
    // failed, and at the first in line, because other workers may have released channels.
    unsigned progress_in_flight(bool all) noexcept;
    unsigned progress_waiting(bool all) noexcept;
    // Work is in flight, is to be launched, or waits in line.
    bool empty() const noexcept;

  private:
    // What there is room for on a GPU: channels of either direction, and orders.
    enum class room : uint8_t { to_pack, to_unpack, to_order };
    static room room_for(gpu::direction dir) noexcept {
        return dir == gpu::direction::pack ? room::to_pack : room::to_unpack;
    }
    // For one kind of room on one GPU.
    struct queue {
        unsigned own = 0;            // channels or orders that messages of this interface hold
        std::set<uint64_t> waiting;  // messages, the first begun comes first
        uint64_t refused = 0;        // the first in line
        tick_clock::time_point since;

        bool comes_first(uint64_t message) const noexcept {
            return waiting.empty() || *waiting.begin() >= message;
        }
        std::chrono::nanoseconds waited(uint64_t first) noexcept;
    };

    bool acquire(queue &line, launch_client &client, gpu::direction dir, unsigned channels,
                 std::chrono::nanoseconds *waited_p) noexcept;

    message_owner &messages_;
    progress_hook &progress_;
    shared_launches launches_;
    std::map<std::pair<int, room>, queue> queues_;
    bool room_came_free_ = false;  // since progress_waiting() looked last
};

}  // namespace cuda_nc::uct
