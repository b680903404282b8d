// The messages of one batch that this process has a part in, with their buffers and requests.
#pragma once

#include <ucp/api/ucp.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "test/uct/calls.hpp"
#include "test/uct/endpoints.hpp"
#include "test/uct/messages.hpp"

namespace matrix {

class batch {
  public:
    // `sleeper`: messages from and to this rank are waited for by themselves; -1: none.
    batch(const std::vector<message> &plan, std::vector<ucp_ep_h> &eps, int sleeper)
        : plan_(plan), eps_(eps), sleeper_(sleeper) {}

    void receive_all(bool unexpected) {
        for (const message &one : plan_) {
            if (one.to == rank_ && one.unexpected == unexpected) {
                receive(one);
            }
        }
    }
    void send_all() {
        for (const message &one : plan_) {
            if (one.from == rank_) {
                send(one);
            }
        }
    }
    // What will never come ends too.
    void cancel() {
        for (const request &one : requests_) {
            matrix::cancel(one.handle);
        }
        calls::abandon_all_up_to(plan_.empty() ? -1 : plan_.back().id);
        cancelled_ = true;
        wait();
    }
    void wait() { wait_all(requests_); }
    // Those that have not ended by themselves after so long have not begun, and are cancelled.
    void wait_long_and_cancel(std::chrono::seconds longest) {
        const time_point end = after(longest);
        while (std::chrono::steady_clock::now() < end && !have_all_ended()) {
            ucp_worker_progress(worker);
        }
        cancel();
    }
    void wait_for_sleeper() { wait_all(of_sleeper_); }
    // What was received well.
    void verify() {
        for (buffer *target : received_) {
            target->verify();
        }
    }

  private:
    using buffers = std::vector<std::unique_ptr<buffer>>;
    struct request {
        void *handle;
        buffer *target;       // null: a send
        const message *what;  // of a receive that may not have begun; else null
    };
    using requests = std::vector<request>;

    bool have_all_ended() const {
        return std::all_of(requests_.begin(), requests_.end(), [](const request &one) {
            return one.handle == nullptr || UCS_PTR_IS_ERR(one.handle) ||
                   ucp_request_check_status(one.handle) != UCS_INPROGRESS;
        });
    }
    requests &list_of(int peer) { return peer == sleeper_ ? of_sleeper_ : requests_; }
    void wait_all(requests &all) {
        const time_point end = after(patience);
        begin_all(all, end);
        for (request &one : all) {
            if (one.what == nullptr && wait_well(one.handle, end) && one.target != nullptr) {
                received_.push_back(one.target);
            }
        }
        all.clear();
    }
    // Receives that begin when their messages are there.
    void begin_all(requests &all, time_point end) {
        for (bool waits = true; waits;) {
            waits = false;
            for (request &one : all) {
                if (one.what != nullptr && calls::begin(*one.what, *one.target, &one.handle)) {
                    one.what = nullptr;
                }
                waits |= one.what != nullptr;
            }
            if (cancelled_) {
                return;
            }
            if (ucp_worker_progress(worker) == 0) {
                sched_yield();
            }
            if (std::chrono::steady_clock::now() > end) {
                fail("a message does not come");
            }
        }
    }
    void receive(const message &one) {
        targets_.push_back(std::make_unique<buffer>(one, one.receive, false));
        buffer &target = *targets_.back();
        void *handle = nullptr;
        const bool begun = calls::receive(one, target, &handle);
        list_of(one.from).push_back({handle, &target, begun ? nullptr : &one});
    }
    void send(const message &one) {
        sources_.push_back(std::make_unique<buffer>(one, one.send, true));
        void *handle = calls::send(one, *sources_.back(), eps_[static_cast<size_t>(one.to)]);
        list_of(one.to).push_back({handle, nullptr, nullptr});
    }

    const std::vector<message> &plan_;
    std::vector<ucp_ep_h> &eps_;
    const int sleeper_;
    bool cancelled_ = false;
    buffers sources_, targets_;
    requests requests_, of_sleeper_;
    std::vector<buffer *> received_;
};

}  // namespace matrix
