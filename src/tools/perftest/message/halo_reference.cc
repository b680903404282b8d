#include "tools/perftest/message/halo_reference.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "tools/perftest/support/clock.hpp"

namespace cuda_nc::tools {
namespace {

constexpr uint64_t untouched = ~uint64_t(0);

// Element `i` of the message that `rank` sends with this tag.
uint64_t value(int rank, int tag, size_t i) {
    return static_cast<uint64_t>(rank) << 42 | static_cast<uint64_t>(tag) << 32 | i;
}

// Writes where each message begins, one behind the other by peer; returns where the last ends.
size_t place(std::vector<exchanged_message> *messages, const std::vector<size_t> &bytes,
             std::vector<size_t> order, size_t exchanged_message::*at) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return (*messages)[a].peer < (*messages)[b].peer; });
    size_t end = 0;
    for (size_t i : order) {
        (*messages)[i].*at = end;
        end += bytes[i];
    }
    return end;
}

}  // namespace

double time_of(message_exchange &what, unsigned times) {
    const double begin = seconds_now();
    for (unsigned i = 0; i < times; ++i) {
        what.run();
    }
    return (seconds_now() - begin) / times;
}

std::string difference_of(const std::vector<uint64_t> &expected, const std::vector<uint64_t> &found,
                          const std::string &where) {
    const auto first = std::mismatch(expected.begin(), expected.end(), found.begin());
    if (first.first == expected.end()) {
        return "";
    }
    return fmt::format("WRONG: element {} of {} is {:#x}, expected {:#x} ({})",
                       first.first - expected.begin(), expected.size(), *first.second, *first.first,
                       where);
}

halo_reference::halo_reference(messenger &by, const std::string &memory, int gpu,
                               std::vector<exchanged_message> messages,
                               const std::vector<size_t> &bytes)
    : by_(by), messages_(std::move(messages)), bytes_(bytes) {
    for (size_t i = 0; i < messages_.size(); ++i) {
        types_.push_back(by.make_contiguous(bytes[i]));
        messages_[i].sent = messages_[i].received = types_.back().get();
    }
    all_bytes_ = place(&messages_, bytes_, order_of_sends(messages_), &exchanged_message::sent_at);
    place(&messages_, bytes_, order_of_receives(messages_), &exchanged_message::received_at);
    // No MPI can send contiguous memory of a simulated GPU.
    const std::string kind = is_gpu_simulated() ? "host" : memory;
    send_ = allocate_memory(kind, gpu, all_bytes_);
    receive_ = allocate_memory(kind, gpu, all_bytes_ + sizeof(untouched));
}

void halo_reference::prepare(const std::string &way) {
    exchange_ = by_.make_exchange(way, send_->address(), receive_->address(), messages_);
}

void halo_reference::fill() {
    std::vector<uint64_t> all(all_bytes_ / 8);
    for (size_t m = 0; m < messages_.size(); ++m) {
        for (size_t i = 0; i < bytes_[m] / 8; ++i) {
            all[messages_[m].sent_at / 8 + i] = value(by_.rank(), messages_[m].send_tag, i);
        }
    }
    send_->write(0, all.data(), all_bytes_);
    all.assign(all_bytes_ / 8 + 1, untouched);
    receive_->write(0, all.data(), all.size() * 8);
}

std::string halo_reference::verify(const std::string &when, const std::string &inject) const {
    std::vector<uint64_t> expected(all_bytes_ / 8 + 1, untouched);
    for (size_t m = 0; m < messages_.size(); ++m) {
        for (size_t i = 0; i < bytes_[m] / 8; ++i) {
            expected[messages_[m].received_at / 8 + i] =
                value(messages_[m].peer, messages_[m].receive_tag, i);
        }
    }
    std::vector<uint64_t> found(expected.size());
    receive_->read(0, found.data(), found.size() * 8);
    if (!inject.empty()) {
        found[inject == "gap" ? found.size() - 1 : found.size() / 2] ^= 1;
    }
    return difference_of(expected, found,
                         fmt::format("contiguous buffer, {}, rank {}", when, by_.rank()));
}

}  // namespace cuda_nc::tools
