// The sender of a message is killed while the message is under way: the receive ends, with all its
// bytes or with an error, and touches no byte between the blocks.
//
// usage: lost [--rounds N] [--seed N] [--bytes N] [--within MS] [--sleeps poll|wait] [--one-way]
//             [--closes] [--fragments] [--peer-errors]
//   rounds: each with two processes of its own (6)
//   within: the sender is killed so long at most after the receiver has asked for the bytes (20)
//   sleeps: the receiver sleeps until its worker's file descriptor has something to say, or by
//           ucp_worker_wait()
//   one-way: the receiver has no endpoint of its own
//   closes: the receiver closes its endpoint by a flush while it waits; in peer-error mode by force
//   fragments: the sender offers nothing
// Its last line says how many receives ended well and how many did not.
#include <poll.h>
#include <signal.h>

#include <random>

#include "test/uct/pair.hpp"

namespace {

using namespace pair;

struct shared_state : meeting {
    std::atomic<int> ended[2];  // with an error, well
} * common;

struct {
    int rounds = 6, within = 20;
    size_t bytes = 16 << 20;
    std::string sleeps;
    bool one_way = false, closes = false, fragments = false, peer_errors = false;
} asked;

std::mt19937_64 chance;

ucp_err_handling_mode_t mode() {
    return asked.peer_errors ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
}

[[noreturn]] void send(const message &one) {
    ucp_ep_h ep = connect(mode());
    buffer source(one, one.send, true);
    start_send(ep, source);
    wait_until([] { return common->is_answered.load(); }, "the receiver's answer");
    progress_for(std::chrono::microseconds(chance() % (1000 * asked.within + 1)));
    raise(SIGKILL);
    std::abort();
}

// Until something happens that the worker's file descriptor tells of.
void sleep() {
    if (asked.sleeps == "wait") {
        check(ucp_worker_wait(worker), "ucp_worker_wait");
        return;
    }
    const ucs_status_t status = ucp_worker_arm(worker);
    if (status == UCS_ERR_BUSY) {
        return;
    }
    check(status, "ucp_worker_arm");
    pollfd wanted = {-1, POLLIN, 0};
    check(ucp_worker_get_efd(worker, &wanted.fd), "ucp_worker_get_efd");
    if (poll(&wanted, 1, 1000 * static_cast<int>(patience.count())) == 0) {
        fail("asleep, and nobody wakes the receiver");
    }
}

void close(ucp_ep_h ep) {
    ucp_request_param_t how = {};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = asked.peer_errors ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    void *request = ucp_ep_close_nbx(ep, &how);
    if (UCS_PTR_IS_PTR(request)) {
        wait_until([request] { return has_ended(request); }, "the close");
        ucp_request_free(request);
    }
}

void receive(const message &one) {
    ucp_ep_h ep = asked.one_way ? nullptr : connect(mode());
    await_beginning();
    buffer target(one, one.receive, false);
    void *request = start_receive(target);
    common->is_answered = true;
    if (asked.closes && ep != nullptr) {
        progress_for(std::chrono::milliseconds(chance() % 3000));
        close(ep);
    }
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!has_ended(request)) {
        if (ucp_worker_progress(worker) == 0 && !asked.sleeps.empty() && !has_ended(request)) {
            sleep();
        }
        if (std::chrono::steady_clock::now() > end) {
            fail("the receive whose sender is gone does not end");
        }
    }
    const bool is_well = !UCS_PTR_IS_ERR(request) &&
                         (request == nullptr || ucp_request_check_status(request) == UCS_OK);
    is_well ? target.verify() : target.verify_gaps();
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
    ++common->ended[is_well ? 1 : 0];
}

[[noreturn]] void run(const message &one) {
    if (asked.fragments && rank_ == 0) {
        setenv("UCX_CUDA_NC_DIRECT", "n", 1);
    }
    open(UCP_FEATURE_TAG | (asked.sleeps.empty() ? 0 : UCP_FEATURE_WAKEUP));
    publish_address();
    if (rank_ == 0) {
        send(one);
    }
    receive(one);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
    std::fflush(stdout);
    std::exit(0);
}

bool run_round(const message &one) {
    pid_t children[2];
    common->is_answered = false;
    for (std::atomic<bool> &known : common->has_address) {
        known = false;
    }
    for (rank_ = 0; rank_ < 2; ++rank_) {
        children[rank_] = fork();
        if (children[rank_] == 0) {
            chance.discard(static_cast<unsigned>(rank_) + 1);
            run(one);
        }
    }
    bool right = true;
    for (int i = 0, status; i < 2; ++i) {
        const pid_t ended = wait(&status);
        right = right && (ended == children[0] ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                                               : WIFEXITED(status) && WEXITSTATUS(status) == 0);
        if (ended == children[1] && i == 0) {
            kill(children[0], SIGKILL);  // it waits for a receiver that has failed
        }
    }
    return right;
}

void read_options(int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (name == "--one-way") {
            asked.one_way = true;
        } else if (name == "--closes") {
            asked.closes = true;
        } else if (name == "--fragments") {
            asked.fragments = true;
        } else if (name == "--peer-errors") {
            asked.peer_errors = true;
        } else if (++i; name == "--sleeps") {
            asked.sleeps = value;
        } else if (name == "--rounds") {
            asked.rounds = std::atoi(value);
        } else if (name == "--within") {
            asked.within = std::atoi(value);
        } else if (name == "--bytes") {
            asked.bytes = std::strtoull(value, nullptr, 10);
        } else if (name == "--seed") {
            chosen.seed = std::strtoull(value, nullptr, 10);
        } else {
            fail("unknown option " + name);
        }
    }
}

}  // namespace

int main(int argc, char **argv) {
    read_options(argc, argv);
    common = share<shared_state>();
    bool right = true;
    for (int i = 0; i < asked.rounds && right; ++i) {
        chance.seed(chosen.seed + static_cast<unsigned>(i));
        right = run_round(large_message(i, asked.bytes));
    }
    std::printf("%s: %d receives ended well, %d with an error\n", right ? "RIGHT" : "WRONG",
                common->ended[1].load(), common->ended[0].load());
    return right ? 0 : 1;
}
