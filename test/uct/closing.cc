// A process sends one strided message from GPU memory and closes the endpoint by a flush: at once,
// or when the receiver has asked for the bytes. Then the flush must not end before the send, unless
// the receiver reads them by itself. The send ends well, and every byte is checked at the receiver,
// while the sender ends.
//
// usage: closing [--rounds N] [--seed N] [--reads] [--receiver-forces | --sender-forces]
//   rounds: each with two processes of its own, in turn of the two kinds (8)
//   reads:  the receiver reads by itself
//   receiver-forces: the receiver alone closes, by force, while the message is under way: its
//           receive ends, and so does the send, though nobody closes at the sender
//   sender-forces: the sender closes by force up to 2 ms after the receiver has asked for the
//   bytes,
//           and frees its memory; the receiver closes later
#include "test/uct/pair.hpp"

namespace {

using namespace pair;

struct shared_state : meeting {
    std::atomic<bool> is_closed, is_over;
} * common;

bool reads = false, receiver_forces = false, sender_forces = false;

void wait_for(void *request, const char *what) {
    if (UCS_PTR_IS_ERR(request)) {
        fail(std::string(what) + ": " + ucs_status_string(UCS_PTR_STATUS(request)));
    }
    wait_until([request] { return has_ended(request); }, what);
    if (request != nullptr) {
        check(ucp_request_check_status(request), what);
        ucp_request_free(request);
    }
}

// Nothing has come for a while, and what had come before has been taken.
void take_all() {
    for (int idle = 0; idle < 10;) {
        idle = ucp_worker_progress(worker) == 0 ? idle + 1 : 0;
    }
}

void send(const message &one, bool at_once) {
    ucp_ep_h ep = connect(UCP_ERR_HANDLING_MODE_NONE);
    buffer source(one, one.send, true);
    void *sending = start_send(ep, source);
    if (!at_once) {
        wait_until([] { return common->is_answered.load(); }, "the receiver's answer");
        take_all();
        if (has_ended(sending)) {
            common->is_closed = true;  // nobody waits for it
            fail("the send has ended already: the GPUs are not slow enough for this test");
        }
    }
    const ucp_request_param_t by_flush = {};
    wait_for(ucp_ep_close_nbx(ep, &by_flush), "the close");
    if (!at_once && !reads && !has_ended(sending)) {
        fail("the endpoint is closed before the send has ended");
    }
    wait_for(sending, "the send");
    common->is_closed = true;
}

void receive(const message &one) {
    await_beginning();
    buffer target(one, one.receive, false);
    void *request = start_receive(target);
    common->is_answered = true;
    wait_for(request, "the receive");
    target.verify();
    wait_until([] { return common->is_closed.load(); }, "the sender's close");
}

// Ends in any way.
void end(void *request, const char *what) {
    if (UCS_PTR_IS_ERR(request)) {
        return;
    }
    wait_until([request] { return has_ended(request); }, what);
    if (request != nullptr) {
        ucp_request_free(request);
    }
}

void close_by_force(ucp_ep_h ep) {
    ucp_request_param_t by_force = {};
    by_force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    by_force.flags = UCP_EP_CLOSE_FLAG_FORCE;
    end(ucp_ep_close_nbx(ep, &by_force), "the close by force");
}

void send_to_who_closes(const message &one) {
    ucp_ep_h ep = connect(UCP_ERR_HANDLING_MODE_PEER);
    buffer source(one, one.send, true);
    end(start_send(ep, source), "the send whose receiver has closed its endpoint");
    common->is_closed = true;
    close_by_force(ep);
}

void close_the_send(const message &one) {
    ucp_ep_h ep = connect(UCP_ERR_HANDLING_MODE_PEER);
    {
        buffer source(one, one.send, true);
        void *request = start_send(ep, source);
        wait_until([] { return common->is_answered.load(); }, "the receiver's answer");
        progress_for(std::chrono::microseconds(one.id % 20 * 100));
        close_by_force(ep);
        end(request, "the send whose endpoint is closed");
    }
    progress_for(std::chrono::milliseconds(50));
    common->is_closed = true;
    wait_until([] { return common->is_over.load(); }, "the receiver's end");
}

void receive_what_is_closed(const message &one) {
    ucp_ep_h ep = connect(UCP_ERR_HANDLING_MODE_PEER);
    await_beginning();
    {
        buffer target(one, one.receive, false);
        void *request = start_receive(target);
        common->is_answered = true;
        wait_until([] { return common->is_closed.load(); }, "the sender's close");
        progress_for(std::chrono::milliseconds(50));
        close_by_force(ep);
        end(request, "the receive whose sender has closed its endpoint");
    }
    common->is_over = true;
}

void close_in_the_middle(const message &one) {
    ucp_ep_h ep = connect(UCP_ERR_HANDLING_MODE_PEER);
    await_beginning();
    {
        buffer target(one, one.receive, false);
        void *request = start_receive(target);
        progress_for(std::chrono::milliseconds(one.id % 20));
        if (has_ended(request)) {
            common->is_closed = true;
            fail("the receive has ended already: the GPUs are not slow enough for this test");
        }
        close_by_force(ep);
        end(request, "the receive whose endpoint is closed");
    }
    wait_until([] { return common->is_closed.load(); }, "the sender's end");
}

void run(const message &one, bool at_once) {
    open();
    publish_address();
    if (receiver_forces) {
        rank_ == 0 ? send_to_who_closes(one) : close_in_the_middle(one);
    } else if (sender_forces) {
        rank_ == 0 ? close_the_send(one) : receive_what_is_closed(one);
    } else {
        rank_ == 0 ? send(one, at_once) : receive(one);
    }
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
    std::fflush(stdout);
    std::exit(0);
}

bool run_round(const message &one, bool at_once) {
    common = share<shared_state>();
    for (rank_ = 0; rank_ < 2; ++rank_) {
        if (fork() == 0) {
            run(one, at_once);
        }
    }
    bool right = true;
    for (int status, i = 0; i < 2; ++i) {
        right = wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && right;
    }
    return right;
}

}  // namespace

int main(int argc, char **argv) {
    int rounds = 8;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--reads") {
            reads = true;
        } else if (name == "--receiver-forces") {
            receiver_forces = true;
        } else if (name == "--sender-forces") {
            sender_forces = true;
        } else if (i + 1 < argc && name == "--rounds") {
            rounds = std::atoi(argv[++i]);
        } else if (i + 1 < argc && name == "--seed") {
            chosen.seed = std::strtoull(argv[++i], nullptr, 10);
        }
    }
    bool right = true;
    for (int i = 0; i < rounds && right; ++i) {
        right = run_round(large_message(i + static_cast<int>(chosen.seed % 100), chosen.largest),
                          i % 2 == 0);
    }
    std::puts(right ? "RIGHT" : "WRONG");
    return right ? 0 : 1;
}
