#include "uct/cuda_nc/protocol/message_table.hpp"

#include <algorithm>
#include <atomic>

#include "ucs/base/random_number.hpp"
#include "uct/cuda_nc/protocol/receive_message.hpp"
#include "uct/cuda_nc/protocol/send_message.hpp"

namespace cuda_nc::uct {
namespace {

template <typename map>
auto *find(const map &in, uint64_t number) noexcept {
    auto found = in.find(number);
    return found != in.end() ? found->second.get() : nullptr;
}

template <typename map>
auto *find(const map &in, message_of_peer message) noexcept {
    auto *one = find(in, message.number);
    return one != nullptr && one->peer() == message.peer ? one : nullptr;
}

}  // namespace

namespace {

// Begins at random, so that a message of an ended process is not taken for one of ours.
uint64_t first_id() noexcept {
    static const uint64_t first = random_number();
    return first;
}

std::atomic<uint64_t> num_ids{0};

}  // namespace

uint64_t next_message_id() noexcept {
    uint64_t id;
    do {
        id = first_id() + num_ids.fetch_add(1, std::memory_order_relaxed);
    } while (id == 0);
    return id;
}

bool is_message_id(uint64_t id) noexcept {
    return id != 0 && id - first_id() < num_ids.load(std::memory_order_relaxed);
}

message_table::message_table() noexcept = default;
message_table::~message_table() = default;

send_message &message_table::add(std::unique_ptr<send_message> begun) {
    const uint64_t number = begun->id();
    return *sends_.emplace(number, std::move(begun)).first->second;
}

receive_message &message_table::add(std::unique_ptr<receive_message> begun) {
    const auto known = receives_of_.emplace(begun->sender(), begun.get());
    try {
        const uint64_t number = begun->id();
        return *receives_.emplace(number, std::move(begun)).first->second;
    } catch (...) {
        receives_of_.erase(known);
        throw;
    }
}

void message_table::erase(const send_message &ended) noexcept {
    sends_.erase(ended.id());
}

void message_table::erase(const receive_message &ended) noexcept {
    auto [at, end] = receives_of_.equal_range(ended.sender());
    while (at != end && at->second != &ended) {
        ++at;
    }
    if (at != end) {
        receives_of_.erase(at);
    }
    receives_.erase(ended.id());
}

void message_table::clear() noexcept {
    sends_.clear();
    receives_.clear();
    receives_of_.clear();
}

send_message *message_table::find_send(uint64_t number) const noexcept {
    return find(sends_, number);
}

send_message *message_table::find_send(message_of_peer message) const noexcept {
    return find(sends_, message);
}

receive_message *message_table::find_receive(message_of_peer message) const noexcept {
    return find(receives_, message);
}

receive_message *message_table::find_receive_of(uint64_t sender, uint64_t peer) const noexcept {
    const auto [begin, end] = receives_of_.equal_range(sender);
    const auto found =
        std::find_if(begin, end, [peer](const auto &one) { return one.second->peer() == peer; });
    return found != end ? found->second : nullptr;
}

unsigned message_table::progress_message(uint64_t message) noexcept {
    if (send_message *send = find(sends_, message)) {
        return send->progress();
    }
    receive_message *receive = find(receives_, message);
    return receive != nullptr ? receive->progress() : 0;
}

unsigned message_table::progress_all() noexcept {
    unsigned happened = 0;
    for_each([&happened](auto &one) { happened += one.progress(); });
    return happened;
}

bool message_table::exists(uint64_t message) const noexcept {
    return sends_.count(message) != 0 || receives_.count(message) != 0;
}

bool message_table::is_polled(uint64_t message) const noexcept {
    if (const send_message *send = find(sends_, message)) {
        return send->is_polled();
    }
    const receive_message *receive = find(receives_, message);
    return receive != nullptr && receive->is_polled();
}

bool message_table::is_decided(uint64_t message) const noexcept {
    const send_message *one = find(sends_, message);
    return one == nullptr || one->is_decided();
}

}  // namespace cuda_nc::uct
