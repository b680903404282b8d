// Work that is ready for a GPU. What may be an order is given to the GPU's mover: at once where its
// kernel takes it, or, while others are at work, with the next ones. The rest is launched when
// everything that has arrived has been looked at, so that one launch serves several messages: a
// launch costs the CPU as much as all else of a message of a megabyte. And the work that is in
// flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ucs/gpu/mover.hpp"
#include "ucs/gpu/pipe.hpp"

namespace cuda_nc::uct {

class launch_client;

class shared_launches {
  public:
    struct running {
        launch_client *client;
        bool is_order;
        gpu::order_end_mark mark;  // of an order

        // False: nothing has happened to it, but for failures.
        bool may_have_left() const noexcept;
    };

    // What is to be launched. False: no memory.
    bool add(launch_client &ready) noexcept { return add(launches_, ready); }
    // What a mover is to be asked to take. False: no memory.
    bool add_order(launch_client &ready) noexcept { return add(orders_, ready); }
    // The work is stopped before it began.
    void remove(const launch_client &stopped) noexcept;
    // The kernel of launched work has left, or the order has ended.
    void left(const launch_client &ended) noexcept;
    const std::vector<running> &in_flight() const noexcept { return in_flight_; }
    bool empty() const noexcept { return launches_.empty() && orders_.empty(); }
    // Whether a launch is to be made that could serve others, too, if they came now.
    bool has_room_for_others() const noexcept;
    // Whoever launches has done what can be done now.
    void all_were_tried() noexcept { has_new_ = false; }
    // Messages whose work is to begin, or has begun.
    size_t number_under_way() const noexcept {
        return orders_.size() + launches_.size() + in_flight_.size();
    }

    // Gives the orders to the GPUs' movers. Each client hears whether its order was taken.
    void give_orders() noexcept;
    // The same where a mover's kernel is there to take them; else one launch is to serve those that
    // come now. While GPUs are at work some are gathered: to give several together costs the CPU
    // little more than to give one.
    void give_early() noexcept;
    // Makes one launch at most; each client hears what became of it. Writes the numbers of their
    // messages to `messages` and returns how many; 0: there are none, or no stream is free now.
    size_t launch_some(uint64_t (&messages)[gpu::max_pipe_sides]) noexcept;

  private:
    using client_list = std::vector<launch_client *>;
    // Of the GPU of the first order, of which there is one.
    bool takes_orders_at_once() const noexcept;
    bool add(client_list &to, launch_client &ready) noexcept;
    static bool remove(client_list &from, const launch_client &one) noexcept;
    gpu::mover *give_some() noexcept;

    client_list orders_, launches_;
    std::vector<running> in_flight_;  // with room for those that are ready
    bool has_new_ = false;            // since all_were_tried()
};

}  // namespace cuda_nc::uct
