#include "uct/cuda_nc/protocol/message_table.hpp"

#include <pthread.h>

#include <atomic>

#include "ucs/base/compiler.hpp"
#include "ucs/base/random_number.hpp"
#include "uct/cuda_nc/protocol/receive_message.hpp"
#include "uct/cuda_nc/protocol/send_message.hpp"

namespace cuda_nc::uct {
namespace {

template <typename message>
message *find(const number_map<message> &in, message_of_peer which) noexcept {
    message *one = in.find(which.number);
    return one != nullptr && one->peer() == which.peer ? one : nullptr;
}

// Numbers begin at random, so that a message of an ended process is not taken for one of ours. A
// child begins anew: its siblings send to the same processes.
std::atomic<uint64_t> drawn{0}, num_ids{0};  // drawn: 0: not yet

[[maybe_unused]] const int children_draw_anew = pthread_atfork(nullptr, nullptr, [] {
    drawn.store(0, std::memory_order_relaxed);
    num_ids.store(0, std::memory_order_relaxed);
});

uint64_t first_id() noexcept {
    uint64_t known = drawn.load(std::memory_order_relaxed);
    if (CUDA_NC_UNLIKELY(known == 0)) {
        const uint64_t mine = random_number() | 1;
        known = drawn.compare_exchange_strong(known, mine) ? mine : known;
    }
    return known;
}

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
message_table::~message_table() {
    clear();
}

message_table::blocks::~blocks() {
    for (void *one : unused_) {
        ::operator delete(one);
    }
}

void *message_table::blocks::take(size_t bytes) {
    if (unused_.empty()) {
        unused_.reserve(most);  // give_back() cannot fail
        return ::operator new(bytes);
    }
    void *one = unused_.back();
    unused_.pop_back();
    return one;
}

void message_table::blocks::give_back(void *one) noexcept {
    if (unused_.size() < unused_.capacity()) {
        unused_.push_back(one);
    } else {
        ::operator delete(one);
    }
}

void message_table::list(send_message *made) try { sends_.set(made->id(), made); } catch (...) {
    made->~send_message();
    send_blocks_.give_back(made);
    throw;
}

void message_table::list(receive_message *made) try {
    receives_.set(made->id(), made);
    try {
        // Contiguous memory has no message at its sender.
        if (made->sender() != 0) {
            made->next_of_sender = receives_of_.find(made->sender());
            receives_of_.set(made->sender(), made);
        }
    } catch (...) {
        receives_.erase(made->id());
        throw;
    }
} catch (...) {
    made->~receive_message();
    receive_blocks_.give_back(made);
    throw;
}

void message_table::erase(const send_message &ended) noexcept {
    send_message *one = sends_.find(ended.id());
    sends_.erase(ended.id());
    one->~send_message();
    send_blocks_.give_back(one);
}

void message_table::unlink(const receive_message &ended) noexcept {
    receive_message *at = receives_of_.find(ended.sender());
    if (at == &ended) {
        if (ended.next_of_sender != nullptr) {
            receives_of_.replace(ended.sender(), ended.next_of_sender);
        } else {
            receives_of_.erase(ended.sender());
        }
        return;
    }
    while (at != nullptr && at->next_of_sender != &ended) {
        at = at->next_of_sender;
    }
    if (at != nullptr) {
        at->next_of_sender = ended.next_of_sender;
    }
}

void message_table::erase(const receive_message &ended) noexcept {
    receive_message *one = receives_.find(ended.id());
    receives_.erase(ended.id());
    unlink(ended);
    one->~receive_message();
    receive_blocks_.give_back(one);
}

void message_table::clear() noexcept {
    for_each([this](const auto &one) { erase(one); });
}

send_message *message_table::find_send(uint64_t number) const noexcept {
    return sends_.find(number);
}

send_message *message_table::find_send(message_of_peer message) const noexcept {
    return find(sends_, message);
}

receive_message *message_table::find_receive(message_of_peer message) const noexcept {
    return find(receives_, message);
}

receive_message *message_table::find_receive_of(uint64_t sender, uint64_t peer) const noexcept {
    receive_message *one = receives_of_.find(sender);
    while (one != nullptr && one->peer() != peer) {
        one = one->next_of_sender;
    }
    return one;
}

unsigned message_table::progress_message(uint64_t message) noexcept {
    if (receive_message *receive = receives_.find(message)) {
        return receive->progress();
    }
    send_message *send = sends_.find(message);
    return send != nullptr ? send->progress() : 0;
}

unsigned message_table::progress_all() noexcept {
    unsigned happened = 0;
    for_each([&happened](auto &one) { happened += one.progress(); });
    return happened;
}

bool message_table::exists(uint64_t message) const noexcept {
    return receives_.find(message) != nullptr || sends_.find(message) != nullptr;
}

bool message_table::is_polled(uint64_t message) const noexcept {
    if (const receive_message *receive = receives_.find(message)) {
        return receive->is_polled();
    }
    const send_message *send = sends_.find(message);
    return send != nullptr && send->is_polled();
}

bool message_table::is_decided(uint64_t message) const noexcept {
    const send_message *one = sends_.find(message);
    return one == nullptr || one->is_decided() || one->wants_fin();
}

}  // namespace cuda_nc::uct
