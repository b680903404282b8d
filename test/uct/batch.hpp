// The messages of one batch that this process has a part in, with their buffers and requests.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <vector>

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
        wait();
    }
    void wait() { wait_all(requests_); }
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
        buffer *target;  // null: a send
    };
    using requests = std::vector<request>;

    requests &list_of(int peer) { return peer == sleeper_ ? of_sleeper_ : requests_; }
    void wait_all(requests &all) {
        const time_point end = after(patience);
        for (const request &one : all) {
            if (wait_well(one.handle, end) && one.target != nullptr) {
                received_.push_back(one.target);
            }
        }
        all.clear();
    }
    static ucp_request_param_t parameters(const buffer &of) {
        ucp_request_param_t made = {};
        made.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        made.datatype = of.datatype();
        return made;
    }
    void receive(const message &one) {
        targets_.push_back(std::make_unique<buffer>(one, one.receive, false));
        buffer &target = *targets_.back();
        ucp_request_param_t how = parameters(target);
        void *handle = ucp_tag_recv_nbx(worker, target.address(), target.count(),
                                        static_cast<ucp_tag_t>(one.id), ~ucp_tag_t(0), &how);
        list_of(one.from).push_back({handle, &target});
    }
    void send(const message &one) {
        sources_.push_back(std::make_unique<buffer>(one, one.send, true));
        buffer &source = *sources_.back();
        ucp_request_param_t how = parameters(source);
        void *handle = ucp_tag_send_nbx(eps_[static_cast<size_t>(one.to)], source.address(),
                                        source.count(), static_cast<ucp_tag_t>(one.id), &how);
        list_of(one.to).push_back({handle, nullptr});
    }

    const std::vector<message> &plan_;
    std::vector<ucp_ep_h> &eps_;
    const int sleeper_;
    buffers sources_, targets_;
    requests requests_, of_sleeper_;
    std::vector<buffer *> received_;
};

}  // namespace matrix
