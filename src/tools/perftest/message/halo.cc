#include "tools/perftest/message/halo.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include <fmt/core.h>

#include "tools/perftest/layouts/catalogue.hpp"
#include "tools/perftest/message/halo_grid.hpp"
#include "tools/perftest/message/memory.hpp"
#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/message/sampling.hpp"
#include "tools/perftest/support/watchdog.hpp"

namespace cuda_nc::tools {
namespace {

struct message_of_halo {
    int peer, send_tag, receive_tag;
    layout_ref sent, received;
    size_t bytes, at;  // of the contiguous reference
    std::unique_ptr<message_type> send_type, receive_type, contiguous;
};

int tag_of(const triple &direction) {
    return (direction[0] + 1) * 9 + (direction[1] + 1) * 3 + direction[2] + 1;
}

class halo_exchange {
  public:
    halo_exchange(messenger &by, const message_plan &plan, const halo_grid &grid, int neighbours)
        : by_(by), plan_(plan), grid_(grid), neighbours_(neighbours) {
        const std::string memory = of_rank(plan.memory, by.rank());
        const int gpu = of_rank(plan.gpus, by.rank());
        for (const triple &direction : halo_grid::directions(neighbours)) {
            const triple back = {-direction[0], -direction[1], -direction[2]};
            message_of_halo one;
            one.peer = grid.neighbour(by.rank(), direction);
            one.send_tag = tag_of(direction);
            one.receive_tag = tag_of(back);  // as its sender sees it
            one.sent = layout_of(grid.sent(direction));
            one.received = layout_of(grid.received(direction));
            check_memory_of(by, *one.sent, memory);  // edges and corners of a halo of width 1
            one.bytes = one.sent->packed_size();
            one.at = bytes_;
            one.contiguous = by.make_contiguous(one.bytes);
            bytes_ += one.bytes;
            messages_.push_back(std::move(one));
        }
        box_ = allocate_memory(memory, gpu, grid.bytes());
        const std::string reference = is_gpu_simulated() ? "host" : memory;
        send_ = allocate_memory(reference, gpu, bytes_);
        receive_ = allocate_memory(reference, gpu, bytes_);
    }

    size_t bytes() const { return bytes_; }
    size_t messages() const { return messages_.size(); }

    void make_types() {
        for (message_of_halo &one : messages_) {
            one.send_type = by_.make_type(*one.sent);
            one.receive_type = by_.make_type(*one.received);
        }
    }

    // Seconds of one exchange.
    double exchange(unsigned times) {
        const double begin = seconds_now();
        for (unsigned i = 0; i < times; ++i) {
            for (const message_of_halo &one : messages_) {
                by_.start_receive(box_->address(), *one.receive_type, one.peer, one.receive_tag);
            }
            for (const message_of_halo &one : messages_) {
                by_.start_send(box_->address(), *one.send_type, one.peer, one.send_tag);
            }
            by_.finish();
        }
        return (seconds_now() - begin) / times;
    }
    double exchange_contiguous(unsigned times) {
        const double begin = seconds_now();
        for (unsigned i = 0; i < times; ++i) {
            for (const message_of_halo &one : messages_) {
                by_.start_receive(receive_->address() + one.at, *one.contiguous, one.peer,
                                  one.receive_tag);
            }
            for (const message_of_halo &one : messages_) {
                by_.start_send(send_->address() + one.at, *one.contiguous, one.peer, one.send_tag);
            }
            by_.finish();
        }
        return (seconds_now() - begin) / times;
    }

    void fill() {
        std::vector<uint64_t> all = elements(false);
        box_->write(0, all.data(), grid_.bytes());
    }

    std::string verify(const char *when) {
        if (!plan_.verify) {
            return "";
        }
        const std::vector<uint64_t> expected = elements(true);
        std::vector<uint64_t> found(expected.size());
        box_->read(0, found.data(), grid_.bytes());
        if (by_.rank() == 0 && !plan_.inject.empty()) {
            // Element 0 is a corner: with 6 neighbours nothing comes there.
            found[plan_.inject == "gap" ? 0 : found.size() / 2 + 1] ^= 1;
        }
        const auto first = std::mismatch(expected.begin(), expected.end(), found.begin());
        if (first.first == expected.end()) {
            return "";
        }
        return fmt::format("WRONG: element {} of {} is {:#x}, expected {:#x} ({}, rank {})",
                           first.first - expected.begin(), expected.size(), *first.second,
                           *first.first, when, by_.rank());
    }

  private:
    // Of the box and its halo, before or after an exchange.
    std::vector<uint64_t> elements(bool exchanged) const {
        const int n = grid_.across();
        std::vector<uint64_t> all;
        all.reserve(grid_.bytes() / 8);
        for (int x = 0; x < n; ++x) {
            for (int y = 0; y < n; ++y) {
                for (int z = 0; z < n; ++z) {
                    const triple part = grid_.part_of({x, y, z});
                    const int steps = part[0] * part[0] + part[1] * part[1] + part[2] * part[2];
                    const bool comes = exchanged && (steps == 1 || neighbours_ == 26);
                    all.push_back(steps == 0 || comes ? grid_.value(by_.rank(), {x, y, z})
                                                      : ~uint64_t(0) - all.size());
                }
            }
        }
        return all;
    }

    messenger &by_;
    const message_plan &plan_;
    const halo_grid &grid_;
    const int neighbours_;
    std::vector<message_of_halo> messages_;
    size_t bytes_ = 0;
    std::unique_ptr<message_memory> box_, send_, receive_;
};

// Of each sample the slowest rank's.
std::vector<double> slowest(messenger &by, const std::vector<double> &mine) {
    std::vector<double> all = mine;
    for (const std::vector<double> &other : gather_numbers(by, mine)) {
        for (size_t i = 0; i < all.size(); ++i) {
            all[i] = std::max(all[i], other[i]);
        }
    }
    return all;
}

std::string measure(messenger &by, const message_plan &plan, halo_exchange &halo,
                    message_row *row_p) {
    halo.fill();
    halo.exchange_contiguous(1);
    by.barrier();
    const double begin = seconds_now();
    halo.make_types();
    halo.exchange(1);
    row_p->first_use = seconds_now() - begin;
    std::string fault = agree(by, halo.verify("first use"));
    if (!fault.empty()) {
        return fault;
    }
    halo.fill();
    double time = 0, reference_time = 0;
    for (unsigned i = 0; i < std::max(plan.warm_up, 1u); ++i) {
        time = halo.exchange(1);
        reference_time = halo.exchange_contiguous(1);
    }
    const schedule times = make_schedule(by, plan, time, reference_time);
    std::vector<double> samples, reference;
    for (unsigned i = 0; i < times.samples; ++i) {
        by.barrier();
        samples.push_back(halo.exchange(times.batch));
        by.barrier();
        reference.push_back(halo.exchange_contiguous(times.contiguous_batch));
    }
    fault = agree(by, halo.verify("warm"));
    row_p->verified = plan.verify && fault.empty();
    row_p->time = summarise(slowest(by, samples));
    row_p->contiguous = summarise(slowest(by, reference));
    return fault;
}

}  // namespace

message_row run_halo(messenger &by, const message_plan &plan, const std::string &test, int edge,
                     int width) {
    watch_for(plan.timeout + 60, fmt::format("{} of {}^3", test, edge));
    const int neighbours = test == "halo26" ? 26 : 6;
    const halo_grid grid(by.size(), edge, width);
    message_row row;
    row.test = test;
    row.layout = fmt::format("box-{}", edge);
    row.text = fmt::format("{0}x{0}x{0}, halo {1}, {2}x{3}x{4} ranks", edge, width, grid.ranks()[0],
                           grid.ranks()[1], grid.ranks()[2]);
    row.transport = plan.transport;
    std::unique_ptr<halo_exchange> halo;
    std::string why = width > edge ? "the halo is wider than the box" : "";
    if (why.empty()) {
        why = failure_of([&] {
            halo = std::make_unique<halo_exchange>(by, plan, grid, neighbours);
            row.bytes = halo->bytes();
            row.window = static_cast<unsigned>(halo->messages());
        });
    }
    row.error = agree(by, why);
    if (row.error.empty()) {
        row.error = measure(by, plan, *halo, &row);
    }
    return row;
}

}  // namespace cuda_nc::tools
