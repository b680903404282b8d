// Message tests: latency, bandwidth, both directions. The same code on every rank.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tools/perftest/message/plan.hpp"
#include "tools/perftest/message/report.hpp"
#include "tools/perftest/message/rank_buffers.hpp"
#include "tools/perftest/message/messenger.hpp"

namespace cuda_nc::tools {

// Who exchanges with whom. A rank without a peer takes part in nothing but the gathers.
struct pairing {
    int peer = -1;
    bool first = false;  // begins a ping-pong, sends in one direction
};

// What one rank sends and receives in an exchange.
struct message_batch {
    const rank_buffers *buffers = nullptr;
    const message_type *type = nullptr;
    unsigned window = 1;
};

// `times` exchanges; returns the seconds that each message took here: half a round trip (latency),
// the time of `window` messages over their number (bandwidth, bidir).
double exchange(messenger &by, const std::string &test, const pairing &with,
                const message_batch &what, unsigned times);

bool is_point_to_point(const std::string &test) noexcept;  // latency, bandwidth, bidir
// Messages of one that have arrived at a rank after it.
unsigned received_messages(const std::string &test, const pairing &with, unsigned window) noexcept;

// One rank's preparations for a case of the plan: buffers and types of the layout and of as many
// contiguous bytes. Throws run_error.
struct prepared_case {
    prepared_case(messenger &by, const message_plan &plan, const layout_case &what,
                  const std::string &test, int peer);

    layout_ref layout_of_type;
    unsigned window;
    rank_buffers laid_out, contiguous;
    std::unique_ptr<message_type> contiguous_type;
};

// Exchanges of one case between the ranks of pairs, and what has come of them.
class paired_case {
  public:
    paired_case(messenger &by, const message_plan &plan, const std::string &test,
                const pairing &with, prepared_case &what)
        : by_(by), plan_(plan), test_(test), with_(with), what_(what) {}

  protected:
    // As exchange(); 0 for a rank without a peer.
    double run(const message_batch &what, unsigned times);
    // This rank's complaint of the bytes that it has; empty where they are right.
    std::string verify(const char *when) const;

    messenger &by_;
    const message_plan &plan_;
    const std::string test_;
    const pairing with_;
    prepared_case &what_;
};

// What a row says before anything is measured.
message_row begin_row(const message_plan &plan, const layout_case &what, const std::string &test);

// Prepares a case of a test that exchanges messages as `inner` does; the complaint of any rank,
// empty where all are ready.
std::string prepare(messenger &by, const message_plan &plan, const layout_case &what,
                    const std::string &inner, int peer, std::unique_ptr<prepared_case> *prepared_p,
                    message_row *row_p);

// One test between ranks 0 and 1; the row is complete on rank 0.
message_row run_point_to_point(messenger &by, const message_plan &plan, const layout_case &what,
                               const std::string &test);

// All pair tests of the plan. On rank 0 `on_begin` is called with each layout's name before it is
// measured, `on_row` with what has come of it.
using begin_handler = std::function<void(const std::string &)>;
using row_handler = std::function<void(const message_row &)>;
void run_point_to_point_tests(messenger &by, const message_plan &plan,
                              const begin_handler &on_begin, const row_handler &on_row);

}  // namespace cuda_nc::tools
