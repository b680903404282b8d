// What one launch of a list_mover moves.
#pragma once

#include <memory>
#include <vector>

#include "ucs/gpu/given_orders.hpp"
#include "ucs/layout/common_blocks.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/one_sided/mover.hpp"

namespace cuda_nc::uct {

// Puts and gets that one launch moves; or an order with layouts, which has a launch of its own. In
// place of the launch the GPU's mover (mover.hpp there) is given orders, where they are short.
struct list_mover::list {
    uint64_t number = 0;
    uint64_t waits_for = 0;   // lists up to this number end first
    bool continues = false;   // its first block, or call, began in the list before
    size_t calls_ended = 0;   // in it
    bool first_ends = false;  // the first of these has a completion, the first one of all
    bool is_launched = false;
    std::unique_ptr<gpu::memory> memory;   // pinned: pairs, then end words
    std::vector<gpu::block_pair> on_host;  // pairs that no kernel reads, in place of these
    std::unique_ptr<gpu::event> done;
    gpu::device *gpu = nullptr;  // where it is launched, ...
    gpu::stream *stream = nullptr;
    bool by_copies = false;
    gpu::given_orders orders;  // ... unless these move it
    bool was_refused = false;  // by the mover
    bool is_copy = false;      // of a block, which began before others were gathered
    gpu::block_pair *pairs = nullptr;
    size_t most_pairs = list_pairs;
    uint64_t most_bytes = list_bytes;
    gpu::end_words ends;
    size_t num_pairs = 0;
    uint64_t puts = 0, gets = 0;  // that began in it
    uint64_t bytes = 0;
    uint64_t seen_bytes = 0;  // at the last progress that saw it grow, which was then:
    clock::time_point seen;
    clock::time_point first_seen;  // at a progress
    bool gathers_on = false;       // of host memory: a progress that sees it grow does not end it
    clock::time_point began;       // under way
    clock::time_point asked;       // the driver, for the last time
    gpu::block_pair alone = {};    // not cut into pairs
    std::shared_ptr<layout_order> order;
    char *order_remote = nullptr;  // displacement 0 of its remote bytes, as our GPU reaches them
    std::vector<std::shared_ptr<gpu::memory>> mappings;
    std::vector<abi::uct_completion *> completions;
    ucs_status_t status = UCS_INPROGRESS;

    void use(const lane &on) noexcept;
    // Its pairs lie where the GPU reads them or, where pinned memory has run out, where it does
    // not, and are copied. Without pairs it has room for one block. Throws std::bad_alloc.
    ucs_status_t make_room(gpu::device &where, bool of_pairs);
    // Host memory is moved, by the CPU. Throws std::bad_alloc.
    void make_room_on_host() {
        most_bytes = host_list_bytes;
        keep_on_host(host_process::most_blocks);
    }
    void keep_on_host(size_t most) {
        most_pairs = most;
        on_host.resize(most);
        pairs = on_host.data();
    }
    bool is_empty() const noexcept { return bytes == 0; }
    // So that one more can be added without fail. Throws std::bad_alloc.
    void reserve_completion() {
        if (completions.size() == completions.capacity()) {
            completions.reserve(2 * completions.size() + 8);
        }
    }
    // Of each call that has ended in it, and of its order.
    bool has_completions() const noexcept {
        return completions.size() == (order != nullptr ? 1 : calls_ended);
    }
    bool is_full() const noexcept { return num_pairs == most_pairs; }
    void add_pair(const gpu::block_pair &one) noexcept {
        pairs[num_pairs++] = one;
        bytes += one.length;
    }
    // Cheap: the driver is asked now and then.
    ucs_status_t query() noexcept;
    void await() noexcept;
    // Gives it to the mover; false: it is long, or the mover has not taken it, and it is to be
    // launched. Not to be called again then. `is_awaited`: the program waits for few at a time.
    bool give(bool is_awaited) noexcept;
    // Enqueues all of it, by kernels or else by copies. After an error nothing of it runs any more.
    ucs_status_t launch() noexcept;
    // The kernels of its stream do not wait for it, nor it for them.
    bool is_unordered() const noexcept { return orders.is_given(); }
    // Moves host memory. It has ended when this returns.
    void move(const host_process &with, bool writes) noexcept;
    ucs_status_t move_order(const host_process &with, bool writes) const noexcept;
    void note_begin(counters::one_sided &kind) noexcept;
    size_t describe(gpu::move_order *all, layout_view *packed) const noexcept;
    gpu::block_pair lone_block() const noexcept;
    bool give_order() noexcept;
    ucs_status_t enqueue() noexcept;
    ucs_status_t launch_pairs() noexcept;
    ucs_status_t launch_order() const noexcept;
    ucs_status_t copy_block(const gpu::block_pair &block) const noexcept;
    ucs_status_t copy() const noexcept;
    // The next block that both layouts of the order have in common; length 0: there is none.
    gpu::block_pair next_pair(common_blocks *rest) const noexcept;
    ucs_status_t copy_order() const noexcept;
    bool is_to_be_asked() noexcept;
    void clear() noexcept;
};

}  // namespace cuda_nc::uct
