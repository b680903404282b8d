// Random messages between processes over UCP, every byte checked: strided datatypes in GPU memory
// (simulated, unless told otherwise) and in host memory, contiguous memory, IOV; expected and
// unexpected, in batches in all directions. Each process derives the same plan from the seed.
//
// usage: matrix [--ranks N] [--batches N] [--window N] [--largest BYTES] [--seed N] [--wakeup]
//               [--peer-errors] [--kinds LETTERS] [--kill-batch N] [--close-batch N]
//               [--sleep-batch N] [--hosts] [--gpus N] [--memory sim|cuda] [--self]
//               [--odd NAME=VALUE]
//   gpus: simulated ones that the processes use in turn (2)
//   kinds: g datatype on the GPU, h datatype in host memory, c contiguous, i IOV
//   sleep-batch: rank 1 sleeps for 3 s once it has begun its sends of that batch; meanwhile all
//                messages of the others among themselves must end
//   self: about half of the messages are from a process to itself
//   odd: a variable of the environment that only processes of odd rank have
//   hosts: each process has a network and a host name of its own; exit status 77 where that is not
//          allowed
//   close-batch: in the middle of that batch each process closes its endpoints by force; every
//                request must end, the buffers are freed at once, and what is sent over new
//                endpoints afterwards arrives
//   kill-batch: rank 1 is killed in the middle of that batch; every request of the others must end,
//               well or not, and they go on without it
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "test/uct/endpoints.hpp"
#include "test/uct/hosts.hpp"
#include "test/uct/plan.hpp"

namespace {

using namespace matrix;

// A batch whose endpoints are closed by force while it is under way: requests may end in any way,
// but they end.
void break_off(std::vector<ucp_ep_h> &eps, std::vector<void *> &requests) {
    lost_a_peer = true;
    close_all(eps, true);
    cancel_all(requests);
    wait_all(requests);
}

void run_batch(int number, const std::vector<message> &plan, std::vector<ucp_ep_h> &eps) {
    const bool kills = number == chosen.kill_batch, closes = number == chosen.close_batch,
               asleep = number == chosen.sleep_batch;
    std::vector<std::unique_ptr<buffer>> buffers, targets;
    std::vector<void *> requests, of_sleeper;
    ucp_request_param_t parameters = {};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    auto list_of = [&](int peer) -> std::vector<void *> & {
        return asleep && peer == 1 ? of_sleeper : requests;
    };
    auto receive = [&](const message &one) {
        targets.push_back(std::make_unique<buffer>(one, one.receive, false));
        buffer &target = *targets.back();
        parameters.datatype = target.datatype();
        list_of(one.from).push_back(ucp_tag_recv_nbx(worker, target.address(), target.count(),
                                                     static_cast<ucp_tag_t>(one.id), ~ucp_tag_t(0),
                                                     &parameters));
    };
    for (const message &one : plan) {
        if (one.to == rank_ && !one.unexpected) {
            receive(one);
        }
    }
    for (const message &one : plan) {
        if (one.from == rank_) {
            buffers.push_back(std::make_unique<buffer>(one, one.send, true));
            buffer &source = *buffers.back();
            parameters.datatype = source.datatype();
            list_of(one.to).push_back(
                ucp_tag_send_nbx(eps[static_cast<size_t>(one.to)], source.address(), source.count(),
                                 static_cast<ucp_tag_t>(one.id), &parameters));
        }
    }
    for (int i = 0; i < 200; ++i) {
        ucp_worker_progress(worker);
        if (kills && rank_ == 1 && i == static_cast<int>(chosen.seed % 200)) {
            raise(SIGKILL);
        }
        if (closes &&
            i == static_cast<int>((chosen.seed + 77 * static_cast<unsigned>(rank_)) % 200)) {
            return break_off(eps, requests);
        }
    }
    for (const message &one : plan) {
        if (one.to == rank_ && one.unexpected) {
            receive(one);
        }
    }
    if (kills) {
        await_loss_of_a_peer();
        cancel_all(requests);
    }
    if (asleep && rank_ == 1) {
        sleep(3);
    }
    auto begin = std::chrono::steady_clock::now();
    wait_all(requests);
    if (asleep && rank_ != 1 &&
        std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(2500)) {
        fail("messages wait for a process that has no part in them");
    }
    wait_all(of_sleeper);
    for (auto &target : targets) {
        if (!lost_a_peer) {
            target->verify();
        }
    }
}

void run() {
    ucp_params_t parameters = {};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
    parameters.features = UCP_FEATURE_TAG | (chosen.wakeup ? UCP_FEATURE_WAKEUP : 0);
    ucp_context_h context;
    check(ucp_init(&parameters, nullptr, &context), "ucp_init");
    ucp_worker_params_t of_worker = {};
    check(ucp_worker_create(context, &of_worker, &worker), "ucp_worker_create");
    if (chosen.wakeup) {
        check(ucp_worker_get_efd(worker, &wakeup_fd), "ucp_worker_get_efd");
    }
    ucp_address_t *address;
    auto &mine = common->addresses[rank_];
    check(ucp_worker_get_address(worker, &address, &mine.length), "ucp_worker_get_address");
    if (mine.length > sizeof(mine.bytes)) {
        fail("a long address");
    }
    std::memcpy(mine.bytes, address, mine.length);
    ucp_worker_release_address(worker, address);
    barrier(0, false);

    std::vector<ucp_ep_h> eps(static_cast<size_t>(chosen.ranks));
    connect(eps);
    planner plan;
    for (int i = 0; i < chosen.batches && !lost_a_peer; ++i) {
        if (i == chosen.close_batch) {
            barrier(3, true);  // UCX resets the endpoints of those that are behind
        }
        run_batch(i, plan.batch(), eps);
        if (i == chosen.close_batch) {
            barrier(4, true);
            lost_a_peer = false;
            connect(eps);
        }
    }
    if (lost_a_peer && chosen.kill_batch < 0) {
        fail("an endpoint failed");
    }
    if (!lost_a_peer) {
        barrier(1, true);
    }
    close_all(eps, lost_a_peer);
    if (!lost_a_peer) {
        barrier(2, true);
    }
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

}  // namespace

int main(int argc, char **argv) {
    parse(argc, argv);
    void *memory = mmap(nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    common = new (memory) shared_state();
    if (chosen.hosts && !hosts::prepare()) {
        std::puts("networks of its own are not allowed here");
        return 77;
    }
    std::vector<pid_t> children;
    for (int rank = 0; rank < chosen.ranks; ++rank) {
        pid_t child = fork();
        if (child == 0) {
            rank_ = rank;
            if (chosen.hosts && !hosts::enter(common->hosts, rank)) {
                fail("no network");
            }
            // Of the simulated GPUs each process takes another, as on a machine with many.
            setenv("UCX_CUDA_NC_SIM_DEVICE", std::to_string(rank % chosen.gpus).c_str(), 0);
            for (std::string &setting : chosen.odd) {
                if (rank % 2 != 0) {
                    putenv(setting.data());
                }
            }
            run();
            std::fflush(stdout);
            std::exit(0);
        }
        children.push_back(child);
        if (chosen.hosts && !hosts::link(common->hosts, rank, child)) {
            fail("no link");
        }
    }
    bool right = true;
    for (size_t i = 0; i < children.size(); ++i) {
        int status;
        pid_t ended = wait(&status);
        if (chosen.kill_batch >= 0 && ended == children[1] && WIFSIGNALED(status)) {
            continue;
        }
        if (ended > 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
            if (right && WIFSIGNALED(status)) {
                std::printf("seed %llu: a process ended by signal %d\n", chosen.seed,
                            WTERMSIG(status));
            }
            right = false;
            for (pid_t other : children) {
                kill(other, SIGKILL);
            }
        }
    }
    std::puts(right ? "RIGHT" : "WRONG");
    return right ? 0 : 1;
}
