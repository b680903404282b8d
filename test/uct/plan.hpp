// The messages of a matrix, at random from its seed: the same ones in each process.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "test/uct/messages.hpp"

namespace matrix {

class planner {
  public:
    planner() : random_(chosen.seed) {
        for (int rank = 0; rank < chosen.ranks; ++rank) {
            ranks_.push_back(rank);
        }
    }

    // Of messages to come: it has no part in them.
    void leave_out(int rank) { ranks_.erase(std::find(ranks_.begin(), ranks_.end(), rank)); }

    // `sender`: the only one; -1: anybody.
    std::vector<message> batch(int sender = -1) {
        std::vector<message> all;
        const int number = chosen.each_way != 0 ? 0 : 1 + below(chosen.window);
        for (int i = 0; i < number; ++i) {
            const int from = sender < 0 ? any_rank() : sender;
            all.push_back(make(from, peer_of(from)));
        }
        for (int i = 0; i < chosen.each_way; ++i) {
            add_one_each_way(&all);
        }
        return all;
    }

  private:
    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    int any_rank() { return ranks_[static_cast<size_t>(below(static_cast<int>(ranks_.size())))]; }
    int peer_of(int rank) {
        if (ranks_.size() == 1 || (chosen.self && below(2) == 0)) {
            return rank;
        }
        int peer = any_rank();
        while (peer == rank) {
            peer = any_rank();
        }
        return peer;
    }
    size_t size() {
        size_t limit = size_t(1) << below(64 - __builtin_clzll(chosen.largest));
        // Shorter ones UCX would read itself.
        const size_t least = std::max(chosen.least, size_t(has_plain() ? 4096 : 1));
        return least + random_() % (below(4) == 0 ? std::min(limit, size_t(2000)) : limit * 2 - 1) %
                           chosen.largest;
    }
    void add_one_each_way(std::vector<message> *all) {
        for (int from : ranks_) {
            for (int to : ranks_) {
                if (from != to) {
                    all->push_back(make(from, to));
                }
            }
        }
    }
    message make(int from, int to) {
        message one;
        one.id = next_id_++;
        one.from = from;
        one.to = to;
        one.bytes = size();
        if (below(2) == 0 && one.bytes > whole_blocks) {
            one.bytes -= one.bytes % whole_blocks;  // regular layouts
        }
        one.room = one.bytes + (below(4) == 0 ? static_cast<size_t>(below(70000)) : 0);
        one.send = side(one.bytes);
        one.receive = side(one.room);
        keep_ucx_off(&one);
        if (below(4) == 0) {
            make_triangle(&one);
        }
        if (below(3) == 0 && one.receive.kind == one.send.kind) {
            one.receive = one.send;
            if (one.room != one.bytes) {
                one.receive.columns = 1;  // a rest of a column would overlap, and be refused
            }
        }
        one.unexpected = below(2) == 0;
        one.call =
            chosen.calls.size() == 1
                ? chosen.calls[0]
                : chosen.calls[static_cast<size_t>(below(static_cast<int>(chosen.calls.size())))];
        return one;
    }
    static bool has_plain() {
        return chosen.memory == "sim" && chosen.kinds.find_first_of("pP") != std::string::npos;
    }
    // UCX takes the simulated GPU's memory for the host's: a message whose one side is contiguous
    // there has a datatype at the other, or it is sent from there and so ours.
    static void keep_ucx_off(message *one) {
        if (one->receive.kind == 'P') {
            one->receive.kind = 'g';
        }
        if (one->send.kind == 'P') {
            one->send.kind = 'p';
            return;
        }
        if (has_plain() && chosen.plain_sends) {
            if (one->receive.kind == 'p' && !one->send.is_on_gpu()) {
                one->send.kind = 'p';
            }
        } else if (has_plain() && (one->send.kind == 'p' || one->receive.kind == 'p')) {
            message::side &other = one->send.kind == 'p' ? one->receive : one->send;
            if (other.kind != 'v') {
                other.kind = 'g';
            }
        }
    }
    // A multiple of most blocks below.
    static constexpr size_t whole_blocks = 4800;
    message::side side(size_t bytes) {
        static const size_t blocks[] = {1, 3, 4, 8, 20, 64, 100, 4096, 70000};
        message::side made;
        made.kind = chosen.kinds[static_cast<size_t>(below(static_cast<int>(chosen.kinds.size())))];
        made.block = blocks[below(9)];
        while (bytes / made.block > 40000 || (made.kind == 'i' && bytes / made.block > 500)) {
            made.block *= 4;
        }
        made.stride = made.block + static_cast<size_t>(below(3) == 0 ? below(50) : made.block % 97);
        made.columns = 1;
        made.growth = 0;
        made.ragged = !made.is_contiguous() && below(5) == 0;
        const size_t columns = static_cast<size_t>(2 + below(15));
        if (below(3) == 0 && !made.ragged && bytes % (made.block * columns) == 0) {
            made.columns = columns;
        }
        return made;
    }
    // The rows of a triangle or a trapezoid, as many as there are bytes for, at the sender.
    void make_triangle(message *one) {
        static const size_t steps[] = {1, 4, 8, 8, 24, 64};
        const size_t step = steps[below(6)], first = step * static_cast<size_t>(1 + below(9));
        size_t rows = 0, bytes = 0;
        while (bytes + first + rows * step <= one->bytes && rows < 500) {
            bytes += first + rows++ * step;
        }
        if (rows < 2) {
            return;
        }
        one->room -= one->bytes - bytes;
        one->bytes = bytes;
        one->send.block = first;
        one->send.stride = first + step * static_cast<size_t>(below(4));
        one->send.columns = 1;
        one->send.growth = step;
        one->send.ragged = false;
        one->receive.columns = 1;
    }

    std::mt19937_64 random_;
    std::vector<int> ranks_;
    int next_id_ = 0;
};

}  // namespace matrix
