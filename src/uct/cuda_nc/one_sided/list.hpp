// What one launch of a list_mover moves.
#pragma once

#include <memory>
#include <vector>

#include "uct/cuda_nc/one_sided/mover.hpp"

namespace cuda_nc::uct {

// Puts and gets that one launch moves; or an order, which has a launch of its own.
struct list_mover::list {
    uint64_t number = 0;
    uint64_t waits_for = 0;  // lists up to this number end first
    bool continues = false;  // its first block began in the list before
    bool is_launched = false;
    std::unique_ptr<gpu::memory> memory;  // pairs, then end words
    std::unique_ptr<gpu::event> done;
    gpu::end_words ends;
    size_t num_pairs = 0;
    uint64_t puts = 0, gets = 0;  // to be counted with the launch
    uint64_t bytes = 0;
    uint64_t seen_bytes = 0;  // at the last progress that saw it grow, which was then:
    clock::time_point seen;
    clock::time_point first_seen;  // at a progress
    clock::time_point began;       // under way
    clock::time_point asked;       // the driver, for the last time
    gpu::block_pair alone = {};    // not cut into pairs
    std::shared_ptr<layout_order> order;
    char *order_remote = nullptr;  // displacement 0 of its remote bytes, as our GPU reaches them
    std::vector<std::shared_ptr<gpu::memory>> mappings;
    std::vector<abi::uct_completion *> completions;
    ucs_status_t status = UCS_INPROGRESS;

    gpu::block_pair *pairs() const noexcept {
        return reinterpret_cast<gpu::block_pair *>(memory->address());
    }
    bool is_empty() const noexcept { return bytes == 0; }
    // So that one more can be added without fail. Throws std::bad_alloc.
    void reserve_completion() {
        if (completions.size() == completions.capacity()) {
            completions.reserve(2 * completions.size() + 8);
        }
    }
    bool is_full() const noexcept { return num_pairs == list_pairs; }
    void add_pair(const gpu::block_pair &one) noexcept {
        pairs()[num_pairs++] = one;
        bytes += one.length;
    }
    // Cheap: the driver is asked now and then.
    ucs_status_t query() noexcept;
    void await() noexcept {
        if (query() == UCS_INPROGRESS) {
            status = done->synchronize();
        }
    }
    // Enqueues all of it, by kernels or else by copies. After an error nothing of it runs any more.
    ucs_status_t launch(gpu::device &gpu, gpu::stream &stream, bool by_copies) noexcept;
    ucs_status_t launch_pairs(gpu::stream &stream, bool by_copies) noexcept;
    ucs_status_t launch_order(gpu::device &gpu, gpu::stream &stream) const noexcept;
    ucs_status_t copy(gpu::stream &stream) const noexcept;
    ucs_status_t copy_order(gpu::stream &stream) const noexcept;
    bool is_to_be_asked() noexcept;
    void clear() noexcept;
};

}  // namespace cuda_nc::uct
