#include "tools/perftest/message/exchange.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "tools/perftest/message/messenger.hpp"
#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {
namespace {

class exchange_by_isend final : public message_exchange {
  public:
    exchange_by_isend(messenger &by, const char *from, char *to,
                      const std::vector<exchanged_message> &messages)
        : by_(by), from_(from), to_(to), messages_(messages) {}

    void run() override {
        for (const exchanged_message &one : messages_) {
            by_.start_receive(to_ + one.received_at, *one.received, one.peer, one.receive_tag);
        }
        for (const exchanged_message &one : messages_) {
            by_.start_send(from_ + one.sent_at, *one.sent, one.peer, one.send_tag);
        }
        by_.finish();
    }

  private:
    messenger &by_;
    const char *const from_;
    char *const to_;
    const std::vector<exchanged_message> messages_;
};

template <class Tag>
std::vector<size_t> order_by(const std::vector<exchanged_message> &messages, Tag tag) {
    std::vector<size_t> order(messages.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return messages[a].*tag < messages[b].*tag; });
    return order;
}

}  // namespace

std::vector<size_t> order_of_sends(const std::vector<exchanged_message> &messages) {
    return order_by(messages, &exchanged_message::send_tag);
}

std::vector<size_t> order_of_receives(const std::vector<exchanged_message> &messages) {
    return order_by(messages, &exchanged_message::receive_tag);
}

std::unique_ptr<message_exchange> messenger::make_exchange(
    const std::string &way, const void *from, void *to,
    const std::vector<exchanged_message> &messages) {
    if (way != "isend") {
        throw run_error(fmt::format(
            "messages can be exchanged by {} through an MPI alone: use nc_perftest mpi, or isend",
            way));
    }
    return std::make_unique<exchange_by_isend>(*this, static_cast<const char *>(from),
                                               static_cast<char *>(to), messages);
}

}  // namespace cuda_nc::tools
