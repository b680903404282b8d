#include "tools/perftest/message/point_to_point.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/message/sampling.hpp"
#include "tools/perftest/support/watchdog.hpp"
#include "ucs/layout/layout_spec.hpp"

namespace cuda_nc::tools {
namespace {

constexpr int data_tag = 1, answer_tag = 900;

void ping_pong(messenger &by, const pairing &with, const message_batch &what) {
    if (with.first) {
        by.send(what.buffers->source(0), *what.type, with.peer, data_tag);
        by.receive(what.buffers->target(0), *what.type, with.peer, data_tag);
    } else {
        by.receive(what.buffers->target(0), *what.type, with.peer, data_tag);
        by.send(what.buffers->source(0), *what.type, with.peer, data_tag);
    }
}

void start_sends(messenger &by, const pairing &with, const message_batch &what) {
    for (unsigned i = 0; i < what.window; ++i) {
        by.start_send(what.buffers->source(i), *what.type, with.peer, data_tag);
    }
}

void start_receives(messenger &by, const pairing &with, const message_batch &what) {
    for (unsigned i = 0; i < what.window; ++i) {
        by.start_receive(what.buffers->target(i), *what.type, with.peer, data_tag);
    }
}

void one_way(messenger &by, const pairing &with, const message_batch &what,
             const message_type &byte) {
    char answer = 0;
    if (with.first) {
        start_sends(by, with, what);
        by.finish();
        by.receive(&answer, byte, with.peer, answer_tag);
    } else {
        start_receives(by, with, what);
        by.finish();
        by.send(&answer, byte, with.peer, answer_tag);
    }
}

void both_ways(messenger &by, const pairing &with, const message_batch &what) {
    start_receives(by, with, what);
    start_sends(by, with, what);
    by.finish();
}

// UCX connects at the first messages, and clocks of idle cores rise with work.
void wake_up(messenger &by, const pairing &with) {
    constexpr unsigned times = 5000;
    char sent[8] = {}, received[8];
    const std::unique_ptr<message_type> word = by.make_contiguous(sizeof(sent));
    for (unsigned i = 0; i < times; ++i) {
        if (with.first) {
            by.send(sent, *word, with.peer, answer_tag);
            by.receive(received, *word, with.peer, answer_tag);
        } else {
            by.receive(received, *word, with.peer, answer_tag);
            by.send(sent, *word, with.peer, answer_tag);
        }
    }
}

pairing first_two(const messenger &by) {
    return by.size() > 1 && by.rank() < 2 ? pairing{1 - by.rank(), by.rank() == 0} : pairing{};
}

layout_ref parse(const std::string &text) {
    std::string error;
    layout_ref what = parse_layout(text, &error);
    if (what == nullptr || what->packed_size() == 0) {
        throw run_error(
            fmt::format("layout {}: {}", text, what == nullptr ? error : "it is empty"));
    }
    return what;
}

layout_ref contiguous_layout(uint64_t bytes) {
    layout_builder builder;
    builder.append(0, bytes);
    return builder.finish();
}

unsigned fitting_window(const layout &what, const message_plan &plan, size_t misalign,
                        const std::string &test) {
    if (test == "latency") {
        return 1;
    }
    const size_t room = plan.buffer_size / rank_buffers::stride_of(what, misalign);
    return static_cast<unsigned>(std::clamp<size_t>(room, 1, plan.window));
}

buffers_request request_of(const messenger &by, const message_plan &plan, const layout_ref &what,
                           unsigned window, size_t misalign, int peer) {
    buffers_request request;
    request.what = what;
    request.memory = of_rank(plan.memory, by.rank());
    request.gpu = of_rank(plan.gpus, by.rank());
    request.window = window;
    request.misalign = misalign;
    request.rank = by.rank();
    request.peer = peer;
    return request;
}

// Contiguous simulated memory is known to nobody but this product: the reference is then the
// host's.
buffers_request reference_request(const messenger &by, const message_plan &plan, uint64_t bytes,
                                  unsigned window, int peer) {
    buffers_request request = request_of(by, plan, contiguous_layout(bytes), window, 0, peer);
    if (is_gpu_simulated()) {
        request.memory = "host";
    }
    return request;
}

class pair_measurement : public paired_case {
  public:
    using paired_case::paired_case;

    // The row's numbers, on rank 0; every rank's complaint is returned there.
    std::string measure(message_row *row_p) {
        if (plan_.verify) {
            what_.laid_out.fill_source();
            what_.laid_out.fill_target();
        }
        const message_batch reference = {&what_.contiguous, what_.contiguous_type.get(),
                                         what_.window};
        by_.barrier();
        run(reference, 1);  // connections are made, buffers of the carrier touched
        by_.barrier();
        const double begin = seconds_now();
        const std::unique_ptr<message_type> type = by_.make_type(*what_.layout_of_type);
        const double made = seconds_now() - begin;
        const message_batch laid_out = {&what_.laid_out, type.get(), what_.window};
        row_p->first_use = made + run(laid_out, 1) * (test_ == "latency" ? 1 : what_.window);
        std::string fault = verify("first use");
        fault = agree(by_, fault);
        if (!fault.empty()) {
            return fault;
        }
        if (plan_.verify) {
            what_.laid_out.fill_target();
        }
        const schedule times = plan_times(laid_out, reference);
        std::vector<double> samples, reference_samples;
        by_.barrier();
        for (unsigned i = 0; i < times.samples; ++i) {  // in turns: both see the same machine
            samples.push_back(run(laid_out, times.batch));
            reference_samples.push_back(run(reference, times.contiguous_batch));
        }
        row_p->time = summarise(std::move(samples));
        row_p->contiguous = summarise(std::move(reference_samples));
        fault = agree(by_, verify("warm"));
        row_p->verified = plan_.verify && fault.empty();
        return fault;
    }

  private:
    schedule plan_times(const message_batch &laid_out, const message_batch &reference) {
        double time = 0, reference_time = 0;
        for (unsigned i = 0; i < std::max(plan_.warm_up, 1u); ++i) {
            time = run(laid_out, 1);
            reference_time = run(reference, 1);
        }
        const double messages = test_ == "latency" ? 2 : what_.window;
        return make_schedule(by_, plan_, time * messages, reference_time * messages);
    }
};

}  // namespace

bool is_point_to_point(const std::string &test) noexcept {
    return test == "latency" || test == "bandwidth" || test == "bidir";
}

double exchange(messenger &by, const std::string &test, const pairing &with,
                const message_batch &what, unsigned times) {
    const std::unique_ptr<message_type> byte = by.make_contiguous(1);
    const double begin = seconds_now();
    for (unsigned i = 0; i < times; ++i) {
        if (test == "latency") {
            ping_pong(by, with, what);
        } else if (test == "bandwidth") {
            one_way(by, with, what, *byte);
        } else {
            both_ways(by, with, what);
        }
    }
    const double messages = (test == "latency" ? 2.0 : what.window) * times;
    return (seconds_now() - begin) / messages;
}

unsigned received_messages(const std::string &test, const pairing &with, unsigned window) noexcept {
    if (test == "latency") {
        return 1;
    }
    return test == "bandwidth" && with.first ? 0 : window;
}

prepared_case::prepared_case(messenger &by, const message_plan &plan, const layout_case &what,
                             const std::string &test, int peer)
    : layout_of_type(parse(what.text)),
      window(fitting_window(*layout_of_type, plan, what.misalign, test)),
      laid_out(request_of(by, plan, layout_of_type, window, what.misalign, peer)),
      contiguous(reference_request(by, plan, layout_of_type->packed_size(), window, peer)),
      contiguous_type(by.make_contiguous(layout_of_type->packed_size())) {
    check_memory_of(by, *layout_of_type, of_rank(plan.memory, by.rank()));
}

double paired_case::run(const message_batch &what, unsigned times) {
    return with_.peer < 0 ? 0 : exchange(by_, test_, with_, what, times);
}

std::string paired_case::verify(const char *when) const {
    if (!plan_.verify || with_.peer < 0) {
        return "";
    }
    const std::string fault = what_.laid_out.verify(received_messages(test_, with_, what_.window),
                                                    by_.rank() == 0 ? plan_.inject : "");
    return fault.empty() ? "" : fmt::format("{} ({}, rank {})", fault, when, by_.rank());
}

message_row begin_row(const message_plan &plan, const layout_case &what, const std::string &test) {
    message_row row;
    row.test = test;
    row.layout = what.name;
    row.text = what.text;
    row.bytes = what.bytes;
    row.transport = plan.transport;
    row.misalign = what.misalign;
    return row;
}

std::string prepare(messenger &by, const message_plan &plan, const layout_case &what,
                    const std::string &inner, int peer, std::unique_ptr<prepared_case> *prepared_p,
                    message_row *row_p) {
    std::string why = failure_of([&] {
        *prepared_p = std::make_unique<prepared_case>(by, plan, what, inner, peer);
        row_p->window = (*prepared_p)->window;
        row_p->blocks = (*prepared_p)->layout_of_type->total_blocks();
    });
    if (why.empty() && by.size() < 2) {
        why = "there is no pair of ranks";
    }
    return agree(by, why);
}

message_row run_point_to_point(messenger &by, const message_plan &plan, const layout_case &what,
                               const std::string &test) {
    watch_for(plan.timeout + 60, fmt::format("{} of {}", test, what.text));
    message_row row = begin_row(plan, what, test);
    row.directions = test == "bidir" ? 2 : 1;
    const pairing with = first_two(by);
    std::unique_ptr<prepared_case> prepared;
    row.error = prepare(by, plan, what, test, with.peer, &prepared, &row);
    if (row.error.empty()) {
        row.error = pair_measurement(by, plan, test, with, *prepared).measure(&row);
    }
    return row;
}

void run_point_to_point_tests(messenger &by, const message_plan &plan,
                              const begin_handler &on_begin, const row_handler &on_row) {
    const pairing with = first_two(by);
    if (with.peer >= 0) {
        watch_for(plan.timeout + 60, "the first messages");
        wake_up(by, with);
    }
    for (const layout_case &what : plan.cases) {
        for (const std::string &test : plan.tests) {
            if (!is_point_to_point(test)) {
                continue;
            }
            if (by.rank() == 0) {
                on_begin(what.name);
            }
            const message_row row = run_point_to_point(by, plan, what, test);
            if (by.rank() == 0) {
                on_row(row);
            }
        }
    }
}

}  // namespace cuda_nc::tools
