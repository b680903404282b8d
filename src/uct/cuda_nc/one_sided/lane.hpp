// The lists of one GPU, or of one direction between host memory and another process's.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "uct/cuda_nc/one_sided/list.hpp"

namespace cuda_nc::uct {

struct list_mover::lane {
    int device = 0;          // the ordinal of `gpu`
    bool by_copies = false;  // launches do not reach the local memory
    gpu::device *gpu = nullptr;
    std::unique_ptr<gpu::stream> stream;
    // Of long blocks, each copied by itself: one begins before the one before it has ended.
    std::array<std::unique_ptr<gpu::stream>, 2> copying;
    size_t next_copying = 0;                      // an index
    std::shared_ptr<const host_process> process;  // then there is no GPU
    bool writes = false;                          // to that process
    clock::time_point progressed;             // to it: when it was seen last, or a list was moved
    std::unique_ptr<list> open;               // never empty but within add(); null: none
    std::deque<std::unique_ptr<list>> lists;  // closed; the first ones are launched
    std::vector<std::unique_ptr<list>> idle;
    std::vector<std::unique_ptr<list>> idle_without_pairs;
    ucs_status_t last_status = UCS_OK;  // of the list that ended last
    bool goes_on = false;               // the call that adds has added to it before
    size_t posted = 0;                  // calls, since nothing was under way, ...
    size_t posted_before = 0;           // ... and the time before that

    // A call has ended in the last list.
    void note_call() noexcept {
        const size_t number = lists.size() + (open != nullptr ? 1 : 0);
        if (number == 1 && (open != nullptr ? open : lists.front())->calls_ended == 1) {
            posted_before = posted;
            posted = 0;
        }
        ++posted;
    }
    // The program seems to post so few at a time that each begins at once.
    bool posts_few() const noexcept {
        return posted_before <= most_begun_singly && posted <= most_begun_singly;
    }
};

}  // namespace cuda_nc::uct
