#include "tools/perftest/message/halo.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "tools/perftest/layouts/catalogue.hpp"
#include "tools/perftest/message/halo_grid.hpp"
#include "tools/perftest/message/halo_reference.hpp"
#include "tools/perftest/message/memory.hpp"
#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/message/sampling.hpp"
#include "tools/perftest/support/watchdog.hpp"

namespace cuda_nc::tools {
namespace {

int tag_of(const triple &direction) {
    return (direction[0] + 1) * 9 + (direction[1] + 1) * 3 + direction[2] + 1;
}

// To and from each neighbour; types and places are still to be filled in.
std::vector<exchanged_message> messages_of(const halo_grid &grid, int rank, int neighbours) {
    std::vector<exchanged_message> messages;
    for (const triple &direction : halo_grid::directions(neighbours)) {
        const triple back = {-direction[0], -direction[1], -direction[2]};
        exchanged_message one;
        one.peer = grid.neighbour(rank, direction);
        one.send_tag = tag_of(direction);
        one.receive_tag = tag_of(back);  // as its sender sees it
        messages.push_back(one);
    }
    return messages;
}

// By neighbour.
std::vector<size_t> bytes_of(const halo_grid &grid, int neighbours) {
    std::vector<size_t> bytes;
    for (const triple &direction : halo_grid::directions(neighbours)) {
        bytes.push_back(layout_of(grid.sent(direction))->packed_size());
    }
    return bytes;
}

// A box, whose faces, edges and corners are sent as datatypes.
class halo_box {
  public:
    halo_box(messenger &by, const message_plan &plan, const halo_grid &grid, int neighbours)
        : by_(by),
          plan_(plan),
          grid_(grid),
          neighbours_(neighbours),
          messages_(messages_of(grid, by.rank(), neighbours)) {
        const std::string memory = of_rank(plan.memory, by.rank());
        for (const triple &direction : halo_grid::directions(neighbours)) {
            sent_.push_back(layout_of(grid.sent(direction)));
            received_.push_back(layout_of(grid.received(direction)));
            check_memory_of(by, *sent_.back(), memory);  // edges and corners of a halo of width 1
        }
        box_ = allocate_memory(memory, of_rank(plan.gpus, by.rank()), grid.bytes());
    }

    // Makes the datatypes, and all else that the way needs.
    void prepare(const std::string &way) {
        for (size_t i = 0; i < messages_.size(); ++i) {
            types_.push_back(by_.make_type(*sent_[i]));
            messages_[i].sent = types_.back().get();
            types_.push_back(by_.make_type(*received_[i]));
            messages_[i].received = types_.back().get();
        }
        exchange_ = by_.make_exchange(way, box_->address(), box_->address(), messages_);
    }
    double exchange(unsigned times) { return time_of(*exchange_, times); }

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
        return difference_of(expected, found, fmt::format("{}, rank {}", when, by_.rank()));
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
    std::vector<exchanged_message> messages_;
    std::vector<layout_ref> sent_, received_;  // by message
    std::vector<std::unique_ptr<message_type>> types_;
    std::unique_ptr<message_memory> box_;
    std::unique_ptr<message_exchange> exchange_;
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

// Checks of the reference, agreed between the ranks.
std::string verify(messenger &by, const message_plan &plan, const halo_options &o,
                   const halo_reference &reference, const char *when) {
    const bool spoilt = o.contiguous_only && by.rank() == 0;  // else the box is
    return agree(by, plan.verify ? reference.verify(when, spoilt ? plan.inject : "") : "");
}

std::string measure_contiguous(messenger &by, const message_plan &plan, const halo_options &o,
                               halo_reference &reference, message_row *row_p) {
    double time = 0;
    for (unsigned i = 0; i < std::max(plan.warm_up, 1u); ++i) {
        time = reference.exchange(1);
    }
    const schedule times = make_schedule(by, plan, time, 0);
    std::vector<double> samples;
    for (unsigned i = 0; i < times.samples; ++i) {
        by.barrier();
        samples.push_back(reference.exchange(times.batch));
    }
    const std::string fault = verify(by, plan, o, reference, "warm");
    row_p->verified = plan.verify && fault.empty();
    row_p->time = row_p->contiguous = summarise(slowest(by, samples));
    return fault;
}

std::string measure_both(messenger &by, const message_plan &plan, const halo_options &o,
                         halo_box &box, halo_reference &reference, message_row *row_p) {
    box.fill();
    by.barrier();
    const double begin = seconds_now();
    box.prepare(o.way);
    box.exchange(1);
    row_p->first_use = seconds_now() - begin;
    std::string fault = agree(by, box.verify("first use"));
    if (!fault.empty()) {
        return fault;
    }
    box.fill();
    double time = 0, reference_time = 0;
    for (unsigned i = 0; i < std::max(plan.warm_up, 1u); ++i) {
        time = box.exchange(1);
        reference_time = reference.exchange(1);
    }
    const schedule times = make_schedule(by, plan, time, reference_time);
    std::vector<double> samples, of_reference;
    for (unsigned i = 0; i < times.samples; ++i) {
        by.barrier();
        samples.push_back(box.exchange(times.batch));
        by.barrier();
        of_reference.push_back(reference.exchange(times.contiguous_batch));
    }
    fault = agree(by, box.verify("warm"));
    if (fault.empty()) {
        fault = verify(by, plan, o, reference, "warm");
    }
    row_p->verified = plan.verify && fault.empty();
    row_p->time = summarise(slowest(by, samples));
    row_p->contiguous = summarise(slowest(by, of_reference));
    return fault;
}

// `box`: none where contiguous buffers alone are measured.
std::string measure(messenger &by, const message_plan &plan, const halo_options &o, halo_box *box,
                    halo_reference &reference, message_row *row_p) {
    reference.fill();
    by.barrier();
    const double begin = seconds_now();
    const std::string why = failure_of([&] { reference.prepare(o.way); });
    row_p->first_use = seconds_now() - begin;
    std::string fault = agree(by, why);
    if (!fault.empty()) {
        return fault;
    }
    row_p->first_use += reference.exchange(1);
    fault = verify(by, plan, o, reference, "first use");
    if (!fault.empty()) {
        return fault;
    }
    reference.fill();
    return box == nullptr ? measure_contiguous(by, plan, o, reference, row_p)
                          : measure_both(by, plan, o, *box, reference, row_p);
}

}  // namespace

std::string name_of(const halo_options &o) {
    return fmt::format("box-{}{}", o.edge, o.way == "isend" ? "" : " " + o.way);
}

message_row run_halo(messenger &by, const message_plan &plan, const std::string &test,
                     const halo_options &o) {
    watch_for(plan.timeout + 60, fmt::format("{} of {}^3 by {}", test, o.edge, o.way));
    const int neighbours = test == "halo26" ? 26 : 6;
    const halo_grid grid(by.size(), o.edge, o.width);
    message_row row;
    row.test = test;
    row.layout = name_of(o);
    row.text =
        fmt::format("{0}x{0}x{0}, halo {1}, {2}x{3}x{4} ranks{5}", o.edge, o.width, grid.ranks()[0],
                    grid.ranks()[1], grid.ranks()[2], o.contiguous_only ? ", contiguous only" : "");
    row.note = o.contiguous_only ? "contiguous only" : "";
    row.transport = plan.transport;
    std::unique_ptr<halo_box> box;
    std::unique_ptr<halo_reference> reference;
    std::string why = o.width > o.edge ? "the halo is wider than the box" : "";
    if (why.empty()) {
        why = failure_of([&] {
            const std::vector<size_t> bytes = bytes_of(grid, neighbours);
            row.bytes = std::accumulate(bytes.begin(), bytes.end(), uint64_t(0));
            row.window = static_cast<unsigned>(bytes.size());
            if (!o.contiguous_only) {
                box = std::make_unique<halo_box>(by, plan, grid, neighbours);
            }
            reference = std::make_unique<halo_reference>(
                by, of_rank(plan.memory, by.rank()), of_rank(plan.gpus, by.rank()),
                messages_of(grid, by.rank(), neighbours), bytes);
        });
    }
    row.error = agree(by, why);
    if (row.error.empty()) {
        row.error = measure(by, plan, o, box.get(), *reference, &row);
    }
    return row;
}

}  // namespace cuda_nc::tools
