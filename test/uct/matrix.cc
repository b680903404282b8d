// Random messages between processes over UCP, every byte checked: strided datatypes in GPU memory
// (simulated, unless told otherwise) and in host memory, contiguous memory, IOV; expected and
// unexpected, in batches in all directions. Each process derives the same plan from the seed.
//
// usage: matrix [--ranks N] [--batches N] [--window N] [--each-way N] [--least BYTES]
//               [--largest BYTES] [--seed N] [--wakeup] [--peer-errors] [--kinds LETTERS]
//               [--kill-batch N] [--notice-within SECONDS] [--close-batch N] [--leave-batch N]
//               [--lose-batch N] [--sleep-batch N] [--may-fail] [--hosts] [--gpus N]
//               [--memory sim|cuda] [--self] [--odd NAME=VALUE] [--seconds N] [--calls LETTERS]
//               [--plain-sends] [--bystander LIBRARY]
//   least: every message has so many bytes (1)
//   each-way: a batch has so many messages from each process to each other, not up to a window
//   seconds: batches go on for so long, and no process may grow meanwhile
//   may-fail: a request may, but it ends, and what was received well is right
//   gpus: simulated ones that the processes use in turn (2)
//   kinds: g datatype on the GPU, v IOV there, p contiguous memory there, P the same for sends
//                alone, which the variables make ours, h datatype in host memory, c contiguous,
//                i IOV
//   calls: t tag (all that there are by default), s synchronous tag, m tag that the receiver probes
//                for, a active message, e the same eagerly, r the same by rendezvous
//   plain-sends: contiguous memory of the simulated GPU is sent to contiguous memory too, which UCX
//                cannot: the variables make it ours
//   bystander: another thread of each process computes on the real GPU, synchronises it, allocates,
//              frees and forks (bystander_begin() in test/gpu/accidents)
//   sleep-batch: rank 1 sleeps once it has begun its sends of that batch, until all messages of
//                the others among themselves have ended
//   self: about half of the messages are from a process to itself
//   odd: a variable of the environment that only processes of odd rank have
//   hosts: each process has a network and a host name of its own; exit status 77 where that is not
//          allowed
//   close-batch: in the middle of that batch each process closes its endpoints by force; every
//                request must end, what was received well is right, the buffers are freed at
//                once, and what is sent over new endpoints afterwards arrives
//   leave-batch: all messages of that batch are from rank 1, which ends without a word once its
//                sends are complete; all of them arrive, and the others go on without it. (Over tcp
//                UCX itself may lose bytes of messages through host memory: it closes an endpoint
//                at the end of one of its connections, and drops what it has not read of the
//                others)
//   lose-batch: all messages of that batch are from rank 1, which is killed in the middle of it,
//               while UCX is not asked for errors; every receive that has begun ends, well or not,
//               and what was received well is right
//   kill-batch: rank 1 is killed in the middle of that batch; every request of the others must end,
//               well or not, what was received well is right, and they send among themselves
//               over new endpoints, one that is alone to itself
//   notice-within: of so many seconds the others learn that it was killed (60)
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "test/uct/batch.hpp"
#include "test/uct/endpoints.hpp"
#include "test/uct/hosts.hpp"
#include "test/uct/plan.hpp"

namespace {

using namespace matrix;

// Endpoints closed by force while a batch is under way: requests may end in any way, but they end.
void break_off(batch &under_way, std::vector<ucp_ep_h> &eps) {
    lost_a_peer = true;
    close_all(eps, true);
    under_way.cancel();
    under_way.verify();
}

// Rank 1 is killed, or endpoints are closed, after a number of these that the seed tells.
bool progress_some(int number, batch &under_way, std::vector<ucp_ep_h> &eps) {
    for (unsigned i = 0; i < 200; ++i) {
        ucp_worker_progress(worker);
        if ((number == chosen.kill_batch || number == chosen.lose_batch) && rank_ == 1 &&
            i == chosen.seed % 200) {
            raise(SIGKILL);
        }
        if (number == chosen.close_batch &&
            i == (chosen.seed + 77 * static_cast<unsigned>(rank_)) % 200) {
            break_off(under_way, eps);
            return false;
        }
    }
    return true;
}

// Does nothing, progress included, until the others have ended their messages among themselves.
void sleep_until_others_end() {
    const time_point end = after(patience / 2);
    while (common->ended_without_sleeper < chosen.ranks - 1) {
        if (std::chrono::steady_clock::now() > end) {
            fail("messages of the others wait for this process, which has no part in them");
        }
        usleep(10000);
    }
}

void wait_beside_sleeper(batch &under_way) {
    if (rank_ == 1) {
        sleep_until_others_end();
    }
    under_way.wait();
    if (rank_ != 1) {
        ++common->ended_without_sleeper;
    }
    under_way.wait_for_sleeper();
}

// A lost process is missed by each message by itself, within 12 seconds.
void lose_sender(batch &under_way) {
    lost_a_peer = true;
    under_way.wait_long_and_cancel(std::chrono::seconds(15));
    under_way.verify();
}

void run_batch(int number, const std::vector<message> &plan, std::vector<ucp_ep_h> &eps) {
    const bool asleep = number == chosen.sleep_batch, leaves = number == chosen.leave_batch;
    batch under_way(plan, eps, asleep ? 1 : -1);
    under_way.receive_all(false);
    if (number == chosen.lose_batch) {
        under_way.receive_all(true);
        under_way.send_all();
        progress_some(number, under_way, eps);
        return lose_sender(under_way);
    }
    under_way.send_all();
    if (!progress_some(number, under_way, eps)) {
        return;
    }
    under_way.receive_all(true);
    if (number == chosen.kill_batch) {
        await_loss_of_a_peer();
        return break_off(under_way, eps);
    }
    asleep ? wait_beside_sleeper(under_way) : under_way.wait();
    if (leaves && rank_ == 1) {
        _exit(0);
    }
    under_way.verify();
}

// All who are there close by force what endpoints they have, and open new ones to each other.
void begin_anew(std::vector<ucp_ep_h> &eps) {
    close_all(eps, true);
    barrier(4, true);
    lost_a_peer = false;
    connect(eps);
}

void check_gpu() {
    if (chosen.kinds.find('g') != std::string::npos &&
        !test_memory::make(chosen.memory, 1, rank_)->is_well()) {
        fail("the GPU reports an error");
    }
}

// The processes that are left send among themselves, one that is alone to itself. Endpoints to
// `rank` that cannot be closed by force go with the worker.
void go_on_without(int rank, planner &plan, std::vector<ucp_ep_h> &eps) {
    gone = rank;
    plan.leave_out(rank);
    if (chosen.peer_errors) {
        begin_anew(eps);
    } else {
        eps[static_cast<size_t>(rank)] = nullptr;
        connect(eps);
    }
    for (int i = 0; i < 2; ++i) {
        run_batch(chosen.batches, plan.batch(), eps);
    }
    check_gpu();
}

void soak(planner &plan, std::vector<ucp_ep_h> &eps) {
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    growth_watch growth;
    int number = 0;
    for (double part = 0; common->gate.may_begin(number, part >= 1); ++number) {
        run_batch(number, plan.batch(), eps);
        part = std::chrono::duration<double>(clock::now() - begin).count() / chosen.seconds;
        growth.look(part);
    }
    if (rank_ == 0) {
        std::printf("%d batches\n", number);
    }
    growth.check();
}

void run_batches(std::vector<ucp_ep_h> &eps) {
    planner plan;
    if (chosen.seconds > 0) {
        return soak(plan, eps);
    }
    for (int i = 0; i < chosen.batches && !may_fail(); ++i) {
        const bool closes = i == chosen.close_batch, leaves = i == chosen.leave_batch,
                   kills = i == chosen.kill_batch, loses = i == chosen.lose_batch;
        if (closes || kills || leaves || loses) {
            barrier(3, true);  // UCX resets the endpoints of those that are behind
        }
        run_batch(i, plan.batch(leaves || loses ? 1 : -1), eps);
        if (closes) {
            begin_anew(eps);
        }
        if (leaves || kills || loses) {
            return go_on_without(1, plan, eps);
        }
    }
    if (may_fail()) {
        fail("an endpoint failed");
    }
}

// Another thread that uses the GPU too, from the library that --bystander names.
class beside {
  public:
    beside() {
        if (chosen.bystander.empty()) {
            return;
        }
        void *library = dlopen(chosen.bystander.c_str(), RTLD_NOW);
        if (library == nullptr) {
            fail(dlerror());
        }
        auto *begin = reinterpret_cast<void *(*)(int)>(dlsym(library, "bystander_begin"));
        end_ = reinterpret_cast<int (*)(void *)>(dlsym(library, "bystander_end"));
        begun_ = begin != nullptr && end_ != nullptr ? begin(rank_) : nullptr;
        if (begun_ == nullptr) {
            fail("no bystander");
        }
    }
    void end() {
        if (begun_ != nullptr && end_(begun_) != 0) {
            fail("a bystander waits too long, or its calls fail");
        }
    }

  private:
    int (*end_)(void *) = nullptr;
    void *begun_ = nullptr;
};

void publish_address() {
    ucp_address_t *address;
    auto &mine = common->addresses[rank_];
    check(ucp_worker_get_address(worker, &address, &mine.length), "ucp_worker_get_address");
    if (mine.length > sizeof(mine.bytes)) {
        fail("a long address");
    }
    std::memcpy(mine.bytes, address, mine.length);
    ucp_worker_release_address(worker, address);
    barrier(0, false);
}

void run() {
    ucp_params_t parameters = {};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
    parameters.features =
        UCP_FEATURE_TAG | UCP_FEATURE_AM | (chosen.wakeup ? UCP_FEATURE_WAKEUP : 0);
    ucp_context_h context;
    check(ucp_init(&parameters, nullptr, &context), "ucp_init");
    ucp_worker_params_t of_worker = {};
    check(ucp_worker_create(context, &of_worker, &worker), "ucp_worker_create");
    if (chosen.wakeup) {
        check(ucp_worker_get_efd(worker, &wakeup_fd), "ucp_worker_get_efd");
    }
    calls::expect_active_messages();
    publish_address();
    std::vector<ucp_ep_h> eps(static_cast<size_t>(chosen.ranks));
    connect(eps);
    beside other;
    run_batches(eps);
    other.end();
    barrier(1, true);
    close_all(eps, false);
    barrier(2, true);
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
        if (child < 0) {
            fail("no process");  // and -1 must never be killed: it means every process
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
        if ((chosen.kill_batch >= 0 || chosen.lose_batch >= 0) && ended == children[1] &&
            WIFSIGNALED(status)) {
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
