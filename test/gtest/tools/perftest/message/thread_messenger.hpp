// Ranks that are threads of one process: messages are block-by-block copies through a queue.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/perftest/message/messenger.hpp"
#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools::test {

struct span {
    ptrdiff_t at;
    size_t length;
};

class listed_type final : public message_type {
  public:
    std::vector<span> spans;
};

// What the ranks share.
struct thread_world {
    explicit thread_world(int ranks) : size(ranks), texts(static_cast<size_t>(ranks)) {}
    const int size;
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::tuple<int, int, int>, std::deque<std::vector<char>>> queues;  // from, to, tag
    std::vector<std::string> texts, agreed;
    int arrived = 0;
    unsigned long turn = 0;
    // May spoil what rank `to` receives, once it is in its memory.
    std::function<void(int to, char *address, const listed_type &type)> spoil;
};

class thread_messenger final : public messenger {
  public:
    thread_messenger(thread_world &world, int rank) : world_(world), rank_(rank) {}

    int rank() const noexcept override { return rank_; }
    int size() const noexcept override { return world_.size; }
    std::unique_ptr<message_type> make_type(const layout &what) override {
        auto type = std::make_unique<listed_type>();
        layout_cursor cursor(what, 0);
        for (block one = cursor.next(UINT64_MAX); one.length != 0; one = cursor.next(UINT64_MAX)) {
            type->spans.push_back({static_cast<ptrdiff_t>(one.displacement), one.length});
        }
        return type;
    }
    std::unique_ptr<message_type> make_contiguous(size_t bytes) override {
        auto type = std::make_unique<listed_type>();
        type->spans.push_back({0, bytes});
        return type;
    }
    void send(const void *address, const message_type &type, int peer, int tag) override {
        std::vector<char> packed;
        for (const span &one : static_cast<const listed_type &>(type).spans) {
            const char *from = static_cast<const char *>(address) + one.at;
            packed.insert(packed.end(), from, from + one.length);
        }
        std::lock_guard<std::mutex> guard(world_.mutex);
        world_.queues[{rank_, peer, tag}].push_back(std::move(packed));
        world_.changed.notify_all();
    }
    void receive(void *address, const message_type &type, int peer, int tag) override {
        const auto &list = static_cast<const listed_type &>(type);
        std::unique_lock<std::mutex> lock(world_.mutex);
        auto &queue = world_.queues[{peer, rank_, tag}];
        wait(lock, [&] { return !queue.empty(); });
        const std::vector<char> packed = std::move(queue.front());
        queue.pop_front();
        lock.unlock();
        const char *from = packed.data();
        for (const span &one : list.spans) {
            std::memcpy(static_cast<char *>(address) + one.at, from, one.length);
            from += one.length;
        }
        if (world_.spoil) {
            world_.spoil(rank_, static_cast<char *>(address), list);
        }
    }
    void start_send(const void *address, const message_type &type, int peer, int tag) override {
        send(address, type, peer, tag);
    }
    void start_receive(void *address, const message_type &type, int peer, int tag) override {
        started_.push_back([=, &type] { receive(address, type, peer, tag); });
    }
    void finish() override {
        for (auto &one : started_) {
            one();
        }
        started_.clear();
    }
    std::vector<std::string> gather(const std::string &mine) override {
        std::unique_lock<std::mutex> lock(world_.mutex);
        world_.texts[static_cast<size_t>(rank_)] = mine;
        const unsigned long turn = world_.turn;
        if (++world_.arrived == world_.size) {
            world_.agreed = world_.texts;
            world_.arrived = 0;
            ++world_.turn;
            world_.changed.notify_all();
        }
        wait(lock, [&] { return world_.turn != turn; });
        return world_.agreed;  // the next turn ends only after this rank has come again
    }
    void barrier() override { gather(""); }

  private:
    template <class Condition>
    void wait(std::unique_lock<std::mutex> &lock, Condition &&condition) {
        if (!world_.changed.wait_for(lock, std::chrono::seconds(60), condition)) {
            throw run_error("a rank waits for ever");
        }
    }

    thread_world &world_;
    const int rank_;
    std::vector<std::function<void()>> started_;
};

}  // namespace cuda_nc::tools::test
