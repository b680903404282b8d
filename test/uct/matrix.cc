// Random messages between processes over UCP, every byte checked: strided datatypes in GPU memory
// (simulated, unless told otherwise) and in host memory, contiguous memory, IOV; expected and
// unexpected, in batches in all directions. Each process derives the same plan from the seed.
//
// usage: matrix [--ranks N] [--batches N] [--window N] [--largest BYTES] [--seed N] [--wakeup]
//               [--peer-errors] [--kinds LETTERS] [--kill-batch N] [--close-batch N]
//               [--sleep-batch N] [--hosts] [--gpus N] [--memory sim|cuda] [--self]
//   gpus: simulated ones that the processes use in turn (2)
//   kinds: g datatype on the GPU, h datatype in host memory, c contiguous, i IOV
//   sleep-batch: rank 1 sleeps for 3 s once it has begun its sends of that batch; meanwhile all
//                messages of the others among themselves must end
//   self: about half of the messages are from a process to itself
//   hosts: each process has a network and a host name of its own; exit status 77 where that is not
//          allowed
//   close-batch: in the middle of that batch each process closes its endpoints by force; every
//                request must end, the buffers are freed at once, and what is sent over new
//                endpoints afterwards arrives
//   kill-batch: rank 1 is killed in the middle of that batch; every request of the others must end,
//               well or not, and they go on without it
#include <cuda_nc/cuda_nc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "bench/test_memory.hpp"
#include "test/uct/hosts.hpp"

namespace {

constexpr int max_ranks = 8;
constexpr auto patience = std::chrono::seconds(60);

struct options {
    int ranks = 2;
    int batches = 20;
    int window = 8;
    size_t largest = 3 << 20;
    unsigned long long seed = 1;
    bool wakeup = false;
    bool peer_errors = false;
    std::string kinds = "ghci";
    std::string memory = "sim";  // of kind g
    int gpus = 2;
    int kill_batch = -1;
    int close_batch = -1;
    int sleep_batch = -1;
    bool hosts = false;
    bool self = false;
} chosen;

struct shared_state {
    struct {
        char bytes[4096];
        size_t length;
    } addresses[max_ranks];
    std::atomic<int> arrived[5];  // barriers, each used once
    hosts::state hosts;
} * common;

int rank_;
ucp_worker_h worker;
int wakeup_fd = -1;
bool lost_a_peer = false;

[[noreturn]] void fail(const std::string &what) {
    std::printf("seed %llu: rank %d: %s\n", chosen.seed, rank_, what.c_str());
    std::fflush(stdout);
    _exit(1);
}

void check(ucs_status_t status, const char *what) {
    if (status != UCS_OK) {
        fail(std::string(what) + ": " + ucs_status_string(status));
    }
}

void barrier(int which, bool progress) {
    ++common->arrived[which];
    auto end = std::chrono::steady_clock::now() + patience;
    while (common->arrived[which] < chosen.ranks) {
        if (progress) {
            ucp_worker_progress(worker);
        }
        if (std::chrono::steady_clock::now() > end) {
            fail("another process does not come");
        }
    }
}

// ---- one message

struct message {
    int id, from, to;
    size_t bytes;  // packed
    size_t room;   // of the receiver, in bytes; at least as many
    struct side {
        char kind;
        size_t block, stride;  // bytes
        size_t columns;  // more than 1: a matrix of so many columns of blocks, column by column
    } send, receive;
    bool unexpected;
};

unsigned char pattern(int id, size_t i) {
    return static_cast<unsigned char>(id * 37 + i * 11 + i / 253 + i / 65521);
}

constexpr unsigned char untouched = 0xa5;

// A user's buffer of one side, and how UCP is told of it.
class buffer {
  public:
    buffer(const message &what, const message::side &side, bool sender)
        : what_(what),
          side_(side),
          size_(sender ? what.bytes : what.room),
          host_(span(), untouched) {
        if (sender) {
            each_byte([&](size_t packed, size_t at) { host_[at] = pattern(what.id, packed); });
        }
        if (side.kind == 'g') {
            gpu_ = test_memory::make(chosen.memory, host_.size(), rank_);
            if (gpu_ == nullptr) {
                fail("no GPU memory");
            }
            gpu_->write(host_);
        }
        describe();
    }
    ~buffer() {
        if (made_) {
            cuda_nc_dt_destroy(datatype_);
        }
    }
    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;

    void *address() { return iov_.empty() ? raw() : iov_.data(); }
    size_t count() const { return count_; }
    ucp_datatype_t datatype() const { return datatype_; }

    void verify() {
        if (gpu_ != nullptr) {
            host_ = gpu_->read();
        }
        std::vector<unsigned char> expected(host_.size(), untouched);
        each_byte([&](size_t packed, size_t at) { expected[at] = pattern(what_.id, packed); });
        for (size_t i = 0; i < host_.size(); ++i) {
            if (host_[i] != expected[i]) {
                char text[200];
                std::snprintf(
                    text, sizeof(text),
                    "message %d (%c to %c, %zu bytes, blocks of %zu each %zu, %zu columns): "
                    "byte %zu is %02x, not %02x",
                    what_.id, what_.send.kind, what_.receive.kind, what_.bytes, side_.block,
                    side_.stride, side_.columns, i, host_[i], expected[i]);
                fail(text);
            }
        }
    }

  private:
    bool scattered() const { return side_.kind != 'c'; }
    size_t num_blocks() const { return (size_ + side_.block - 1) / side_.block; }
    size_t block_length(size_t i) const { return std::min(side_.block, size_ - i * side_.block); }
    // Where block i lies, counted in blocks.
    size_t place(size_t i) const {
        const size_t rows = num_blocks() / side_.columns;
        return side_.columns == 1 ? i : i % rows * side_.columns + i / rows;
    }
    size_t span() const { return scattered() ? num_blocks() * side_.stride + 1 : size_ + 1; }
    void *raw() { return gpu_ != nullptr ? gpu_->address() : host_.data(); }

    template <typename visitor>
    void each_byte(visitor visit) const {
        for (size_t i = 0; i < what_.bytes; ++i) {
            visit(i, scattered() ? place(i / side_.block) * side_.stride + i % side_.block : i);
        }
    }

    void describe() {
        if (side_.kind == 'c') {
            datatype_ = ucp_dt_make_contig(1);
            count_ = size_;
        } else if (side_.kind == 'i') {
            for (size_t i = 0; i < num_blocks(); ++i) {
                iov_.push_back({host_.data() + place(i) * side_.stride, block_length(i)});
            }
            datatype_ = UCP_DATATYPE_IOV;
            count_ = iov_.size();
        } else {
            std::vector<cuda_nc_block_t> blocks;
            for (size_t i = 0; i < num_blocks(); ++i) {
                blocks.push_back(
                    {static_cast<ptrdiff_t>(place(i) * side_.stride), block_length(i)});
            }
            check(cuda_nc_dt_create(blocks.data(), blocks.size(), static_cast<ptrdiff_t>(span()),
                                    &datatype_),
                  "cuda_nc_dt_create");
            made_ = true;
            count_ = 1;
        }
    }

    const message what_;
    const message::side side_;
    const size_t size_;  // packed bytes
    std::vector<unsigned char> host_;
    std::unique_ptr<test_memory> gpu_;
    std::vector<ucp_dt_iov_t> iov_;
    ucp_datatype_t datatype_ = 0;
    size_t count_ = 0;
    bool made_ = false;
};

// ---- the plan

class planner {
  public:
    planner() : random_(chosen.seed) {}

    std::vector<message> batch() {
        std::vector<message> all;
        int number = 1 + below(chosen.window);
        for (int i = 0; i < number; ++i) {
            message one;
            one.id = next_id_++;
            one.from = below(chosen.ranks);
            one.to = (one.from + (chosen.self && below(2) == 0 ? 0 : 1 + below(chosen.ranks - 1))) %
                     chosen.ranks;
            one.bytes = size();
            if (below(2) == 0 && one.bytes > whole_blocks) {
                one.bytes -= one.bytes % whole_blocks;  // regular layouts
            }
            one.room = one.bytes + (below(4) == 0 ? static_cast<size_t>(below(70000)) : 0);
            one.send = side(one.bytes);
            one.receive = side(one.room);
            if (below(3) == 0 && one.receive.kind == one.send.kind) {
                one.receive = one.send;
            }
            one.unexpected = below(2) == 0;
            all.push_back(one);
        }
        return all;
    }

  private:
    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    size_t size() {
        size_t limit = size_t(1) << below(64 - __builtin_clzll(chosen.largest));
        return 1 + random_() % (below(4) == 0 ? std::min(limit, size_t(2000)) : limit * 2 - 1) %
                       chosen.largest;
    }
    // A multiple of most blocks below.
    static constexpr size_t whole_blocks = 4800;
    message::side side(size_t bytes) {
        static const size_t blocks[] = {1, 3, 4, 8, 20, 64, 100, 4096, 70000};
        message::side made;
        made.kind = chosen.kinds[static_cast<size_t>(below(static_cast<int>(chosen.kinds.size())))];
        made.block = blocks[below(9)];
        while (bytes / made.block > 40000 || (made.kind == 'i' && bytes / made.block > 500)) {
            made.block *= 4;
        }
        made.stride = made.block + static_cast<size_t>(below(3) == 0 ? below(50) : made.block % 97);
        made.columns = 1;
        const size_t columns = static_cast<size_t>(2 + below(15));
        if (below(3) == 0 && bytes % (made.block * columns) == 0) {
            made.columns = columns;
        }
        return made;
    }

    std::mt19937_64 random_;
    int next_id_ = 0;
};

// ---- UCP

void on_error(void *, ucp_ep_h, ucs_status_t) {
    lost_a_peer = true;
}

void sleep_until_event() {
    ucs_status_t status = ucp_worker_arm(worker);
    if (status == UCS_OK) {
        pollfd wanted = {wakeup_fd, POLLIN, 0};
        poll(&wanted, 1, 5000);
    }
}

void wait_all(std::vector<void *> &requests) {
    auto end = std::chrono::steady_clock::now() + patience;
    for (void *request : requests) {
        if (UCS_PTR_IS_ERR(request) && lost_a_peer) {
            continue;
        }
        if (UCS_PTR_IS_ERR(request)) {
            fail(std::string("a request: ") + ucs_status_string(UCS_PTR_STATUS(request)));
        }
        if (request == nullptr) {
            continue;
        }
        ucs_status_t status;
        while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
            if (ucp_worker_progress(worker) == 0) {
                if (chosen.wakeup) {
                    sleep_until_event();
                } else {
                    sched_yield();
                }
                if (std::chrono::steady_clock::now() > end) {
                    fail("a message does not end");
                }
            }
        }
        ucp_request_free(request);
        if (!lost_a_peer) {
            check(status, "a request");
        }
    }
    requests.clear();
}

// What the dead process has not sent will never come: such a receive ends by being cancelled.
void cancel_receives_from_the_dead(const std::vector<message> &, std::vector<void *> &requests) {
    auto end = std::chrono::steady_clock::now() + patience;
    while (!lost_a_peer) {
        ucp_worker_progress(worker);
        if (std::chrono::steady_clock::now() > end) {
            fail("no error is reported");
        }
    }
    for (void *request : requests) {
        if (request != nullptr && !UCS_PTR_IS_ERR(request)) {
            ucp_request_cancel(worker, request);
        }
    }
}

void close_all(std::vector<ucp_ep_h> &eps, bool by_force) {
    std::vector<void *> closing;
    ucp_request_param_t close = {};
    if (by_force) {
        close.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        close.flags = UCP_EP_CLOSE_FLAG_FORCE;
    }
    for (ucp_ep_h &ep : eps) {
        if (ep != nullptr) {
            closing.push_back(ucp_ep_close_nbx(ep, &close));
            ep = nullptr;
        }
    }
    wait_all(closing);
}

void connect(std::vector<ucp_ep_h> &eps) {
    for (int peer = 0; peer < chosen.ranks; ++peer) {
        ucp_ep_params_t of_ep = {};
        of_ep.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        of_ep.address = reinterpret_cast<ucp_address_t *>(common->addresses[peer].bytes);
        of_ep.err_mode =
            chosen.peer_errors ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
        of_ep.err_handler.cb = on_error;
        if (peer != rank_ || chosen.self) {
            check(ucp_ep_create(worker, &of_ep, &eps[static_cast<size_t>(peer)]), "ucp_ep_create");
        }
    }
}

// A batch whose endpoints are closed by force while it is under way: requests may end in any way,
// but they end.
void break_off(std::vector<ucp_ep_h> &eps, std::vector<void *> &requests) {
    lost_a_peer = true;
    close_all(eps, true);
    for (void *request : requests) {
        if (request != nullptr && !UCS_PTR_IS_ERR(request)) {
            ucp_request_cancel(worker, request);
        }
    }
    wait_all(requests);
}

void run_batch(const std::vector<message> &plan, std::vector<ucp_ep_h> &eps, bool last, bool closes,
               bool asleep) {
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
        if (last && rank_ == 1 && i == static_cast<int>(chosen.seed % 200)) {
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
    if (last) {
        cancel_receives_from_the_dead(plan, requests);
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
        run_batch(plan.batch(), eps, i == chosen.kill_batch, i == chosen.close_batch,
                  i == chosen.sleep_batch);
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

void parse(int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        std::string name = argv[i];
        auto value = [&]() -> const char * {
            if (++i == argc) {
                fail("a value is missing after " + name);
            }
            return argv[i];
        };
        if (name == "--ranks") {
            chosen.ranks = std::atoi(value());
        } else if (name == "--batches") {
            chosen.batches = std::atoi(value());
        } else if (name == "--gpus") {
            chosen.gpus = std::atoi(value());
        } else if (name == "--window") {
            chosen.window = std::atoi(value());
        } else if (name == "--largest") {
            chosen.largest = std::strtoull(value(), nullptr, 10);
        } else if (name == "--seed") {
            chosen.seed = std::strtoull(value(), nullptr, 10);
        } else if (name == "--kinds") {
            chosen.kinds = value();
        } else if (name == "--memory") {
            chosen.memory = value();
        } else if (name == "--kill-batch") {
            chosen.kill_batch = std::atoi(value());
            chosen.peer_errors = true;
        } else if (name == "--close-batch") {
            chosen.close_batch = std::atoi(value());
            chosen.peer_errors = true;
        } else if (name == "--sleep-batch") {
            chosen.sleep_batch = std::atoi(value());
        } else if (name == "--self") {
            chosen.self = true;
        } else if (name == "--hosts") {
            chosen.hosts = true;
        } else if (name == "--wakeup") {
            chosen.wakeup = true;
        } else if (name == "--peer-errors") {
            chosen.peer_errors = true;
        } else {
            fail("unknown option " + name);
        }
    }
    if (chosen.ranks < 2 || chosen.ranks > max_ranks) {
        fail("2 to 8 ranks");
    }
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
