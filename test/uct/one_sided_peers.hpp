// Processes that put into and get from each other's memory by UCP: what their tests share. What a
// put should leave is written down by plain loops in shared memory.
#pragma once

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
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

constexpr int max_ranks = 4;
#ifndef PIECE_BYTES
#define PIECE_BYTES (4 << 20)
#endif
constexpr size_t region = PIECE_BYTES;  // bytes of each of a process's three pieces of memory
constexpr auto patience = std::chrono::seconds(60);

struct choices {
    int ranks = 2, rounds = 6, blocks = 400;
    size_t longest = 20000;
    unsigned seed = 1;
    std::string memory = "sim";
    bool list = false, outside = false, fences = false, wakeup = false, kill = false, freed = false;
    bool odd = false;
};
inline choices chosen;

struct of_rank {
    char address[4096];
    size_t address_length;
    char keys[3][1024];  // of the source, of the target, of the first half of the target
    size_t key_length[3];
    uint64_t base[2];
    unsigned char expected[region];  // in the target
};

struct shared_state {
    std::atomic<int> arrived[128];
    std::atomic<int> gone;
    of_rank ranks[max_ranks];
};
inline shared_state *common;

inline int rank_;
inline ucp_context_h context;
inline ucp_worker_h worker;
inline std::mt19937_64 generator;
inline bool lost_a_peer = false;
inline uint64_t more_features = 0;  // of the context
inline ucp_err_handling_mode_t error_mode = UCP_ERR_HANDLING_MODE_PEER;

[[noreturn]] inline void fail(const std::string &what) {
    std::printf("seed %u: rank %d: %s\n", chosen.seed, rank_, what.c_str());
    std::fflush(stdout);
    _exit(1);
}

inline void check(ucs_status_t status, const char *what) {
    if (status != UCS_OK) {
        fail(std::string(what) + ": " + ucs_status_string(status));
    }
}

inline size_t random_below(size_t limit) {
    return generator() % limit;
}

inline void barrier(int which) {
    ++common->arrived[which];
    const auto end = std::chrono::steady_clock::now() + patience;
    while (common->arrived[which] + common->gone < chosen.ranks) {
        ucp_worker_progress(worker);
        sched_yield();
        if (std::chrono::steady_clock::now() > end) {
            fail("another process does not come");
        }
    }
}

inline unsigned char pattern(int rank, size_t i, unsigned salt) {
    return static_cast<unsigned char>(
        ((i + 1) * 0x9E3779B97F4A7C15ull + static_cast<unsigned>(rank) * 77 + salt * 131) >> 40);
}

inline ucs_memory_type_t memory_type() {
    return chosen.memory == "host" ? UCS_MEMORY_TYPE_HOST : UCS_MEMORY_TYPE_CUDA;
}

struct piece {
    std::unique_ptr<test_memory> memory;
    ucp_mem_h handle = nullptr;
    char *at(size_t offset) const { return static_cast<char *>(memory->address()) + offset; }
    void register_it() { handle = registered(region); }
    // Its first `length` bytes.
    ucp_mem_h registered(size_t length) const {
        ucp_mem_map_params_t params = {};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                            UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
        params.address = memory->address();
        params.length = length;
        params.memory_type = memory_type();
        ucp_mem_h made;
        check(ucp_mem_map(context, &params, &made), "ucp_mem_map");
        return made;
    }
};
inline piece source, target, landing;
inline ucp_mem_h half_of_target;

struct peer {
    ucp_ep_h ep = nullptr;
    ucp_rkey_h key[3] = {};
    uint64_t base[2] = {};

    // One that holds bytes up to `end` of the target.
    ucp_rkey_h target_key(size_t end) const {
        return end <= region / 2 && random_below(2) == 0 ? key[2] : key[1];
    }
};
inline std::vector<peer> peers;

inline void on_error(void *, ucp_ep_h, ucs_status_t) {
    lost_a_peer = true;
}

inline bool may_fail() {
    return chosen.kill || lost_a_peer;
}

inline ucs_status_t wait_for(void *request) {
    if (request == nullptr || UCS_PTR_IS_ERR(request)) {
        return UCS_PTR_STATUS(request);
    }
    const auto end = std::chrono::steady_clock::now() + patience;
    ucs_status_t status;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        if (ucp_worker_progress(worker) == 0) {
            if (chosen.wakeup && ucp_worker_arm(worker) == UCS_OK) {
                int fd = -1;
                check(ucp_worker_get_efd(worker, &fd), "ucp_worker_get_efd");
                pollfd wanted = {fd, POLLIN, 0};
                if (poll(&wanted, 1, 5000) == 0) {
                    fail("asleep while an operation is under way");
                }
            } else {
                sched_yield();
            }
        }
        if (std::chrono::steady_clock::now() > end) {
            fail("an operation does not end");
        }
    }
    ucp_request_free(request);
    return status;
}

// Rank 1 is killed: what others do among themselves goes on all the same.
inline bool is_dead(int rank) {
    return chosen.kill && rank == 1;
}

// `other`: whose memory it is about; negative: of several.
inline bool must_succeed(int other) {
    return !may_fail() || (chosen.kill && other >= 0 && !is_dead(other));
}

inline void end_well(void *request, const char *what, int other = -1) {
    const ucs_status_t status = wait_for(request);
    if (must_succeed(other)) {
        check(status, what);
    }
}

inline void end_all(const std::vector<void *> &requests, const char *what, int other = -1) {
    for (void *one : requests) {
        end_well(one, what, other);
    }
}

inline ucp_request_param_t with(ucp_mem_h handle) {
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.memh = handle;
    param.memory_type = memory_type();
    return param;
}

inline void flush() {
    const ucp_request_param_t param = {};
    if (random_below(2) == 0 && !chosen.kill) {
        end_well(ucp_worker_flush_nbx(worker, &param), "ucp_worker_flush_nbx");
        return;
    }
    for (size_t other = 0; other < peers.size(); ++other) {
        if (peers[other].ep != nullptr) {
            end_well(ucp_ep_flush_nbx(peers[other].ep, &param), "ucp_ep_flush_nbx",
                     static_cast<int>(other));
        }
    }
}

// One call of UCX for all blocks, from the source; returns when it has ended. Where this UCX has no
// lists the test is skipped.
#if UCP_API_VERSION >= UCP_VERSION(1, 22)
inline ucs_status_t put_lists(const peer &other, const std::vector<void *> &buffers,
                              const std::vector<size_t> &lengths,
                              const std::vector<uint64_t> &addresses,
                              const std::vector<ucp_rkey_h> &keys) {
    const std::vector<ucp_mem_h> handles(buffers.size(), source.handle);
    ucp_dt_local_sgl_t local = {};
    local.field_mask = UCP_DT_LOCAL_SGL_FIELD_BUFFERS | UCP_DT_LOCAL_SGL_FIELD_LENGTHS |
                       UCP_DT_LOCAL_SGL_FIELD_MEMHS;
    local.buffers = buffers.data();
    local.lengths = lengths.data();
    local.memhs = handles.data();
    ucp_dt_remote_sgl_t remote = {};
    remote.field_mask = UCP_DT_REMOTE_SGL_FIELD_REMOTE_ADDRS | UCP_DT_REMOTE_SGL_FIELD_LENGTHS |
                        UCP_DT_REMOTE_SGL_FIELD_RKEYS;
    remote.remote_addrs = addresses.data();
    remote.lengths = lengths.data();
    remote.rkeys = keys.data();
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_MEMORY_TYPE |
                         UCP_OP_ATTR_FIELD_REMOTE_DATATYPE | UCP_OP_ATTR_FIELD_REMOTE |
                         UCP_OP_ATTR_FIELD_REMOTE_COUNT;
    param.datatype = ucp_dt_make_sgl();
    param.remote_datatype = ucp_dt_make_sgl();
    param.memory_type = memory_type();
    param.remote = &remote;
    param.remote_count = buffers.size();
    return wait_for(ucp_put_nbx(other.ep, &local, buffers.size(), UCP_REMOTE_ADDR_INVALID,
                                UCP_RKEY_INVALID, &param));
}
#else
inline ucs_status_t put_lists(const peer &, const std::vector<void *> &,
                              const std::vector<size_t> &, const std::vector<uint64_t> &,
                              const std::vector<ucp_rkey_h> &) {
    std::printf("SKIP: this UCX has no lists\n");
    std::fflush(stdout);
    _exit(77);
}
#endif

// Tells the others a key.
inline void publish(ucp_mem_h handle, int which) {
    of_rank &own = common->ranks[rank_];
    void *key;
    size_t length;
    check(ucp_rkey_pack(context, handle, &key, &length), "ucp_rkey_pack");
    if (length > sizeof(own.keys[0])) {
        fail("a key is longer than thought");
    }
    std::memcpy(own.keys[which], key, length);
    own.key_length[which] = length;
    ucp_rkey_buffer_release(key);
}

inline void open() {
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features =
        UCP_FEATURE_RMA | UCP_FEATURE_AM | (chosen.wakeup ? UCP_FEATURE_WAKEUP : 0) | more_features;
    check(ucp_init(&params, nullptr, &context), "ucp_init");
    ucp_worker_params_t of_worker = {};
    check(ucp_worker_create(context, &of_worker, &worker), "ucp_worker_create");
    of_rank &own = common->ranks[rank_];
    ucp_address_t *address;
    check(ucp_worker_get_address(worker, &address, &own.address_length), "address");
    std::memcpy(own.address, address, own.address_length);
    ucp_worker_release_address(worker, address);
    std::vector<unsigned char> bytes(region);
    int which = 0;
    for (piece *one : {&source, &target, &landing}) {
        one->memory = test_memory::make(chosen.memory, region, rank_);
        if (one->memory == nullptr) {
            fail("there is no such memory");
        }
        for (size_t i = 0; i < region; ++i) {
            bytes[i] = one == &source ? pattern(rank_, i, 0) : 0x55;
        }
        one->memory->write(bytes);
        one->register_it();
        if (one != &landing) {
            own.base[which] = reinterpret_cast<uint64_t>(one->memory->address());
            publish(one->handle, which++);
        }
    }
    half_of_target = target.registered(region / 2);
    publish(half_of_target, 2);
    std::memset(own.expected, 0x55, region);
}

// The target is freed, and another one takes its place; whether at the same address, as mostly.
// The others have no keys of it at that time.
inline bool renew_target() {
    void *const before = target.memory->address();
    check(ucp_mem_unmap(context, half_of_target), "ucp_mem_unmap");
    check(ucp_mem_unmap(context, target.handle), "ucp_mem_unmap");
    target.memory.reset();
    target.memory = test_memory::make(chosen.memory, region, rank_);
    if (target.memory == nullptr) {
        fail("there is no memory any more");
    }
    target.memory->write(std::vector<unsigned char>(region, 0x55));
    target.register_it();
    half_of_target = target.registered(region / 2);
    of_rank &own = common->ranks[rank_];
    own.base[1] = reinterpret_cast<uint64_t>(target.memory->address());
    publish(target.handle, 1);
    publish(half_of_target, 2);
    std::memset(own.expected, 0x55, region);
    return target.memory->address() == before;
}

inline void forget_targets() {
    for (peer &one : peers) {
        for (int which = 1; one.ep != nullptr && which < 3; ++which) {
            ucp_rkey_destroy(one.key[which]);
        }
    }
}

inline void find_targets() {
    for (size_t other = 0; other < peers.size(); ++other) {
        peer &one = peers[other];
        for (int which = 1; one.ep != nullptr && which < 3; ++which) {
            check(ucp_ep_rkey_unpack(one.ep, common->ranks[other].keys[which], &one.key[which]),
                  "ucp_ep_rkey_unpack");
        }
        one.base[1] = common->ranks[other].base[1];
    }
}

inline void connect() {
    peers.resize(static_cast<size_t>(chosen.ranks));
    for (int other = 0; other < chosen.ranks; ++other) {
        if (other == rank_) {
            continue;
        }
        of_rank &its = common->ranks[other];
        peer &made = peers[static_cast<size_t>(other)];
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.address = reinterpret_cast<ucp_address_t *>(its.address);
        params.err_mode = error_mode;
        params.err_handler.cb = on_error;
        check(ucp_ep_create(worker, &params, &made.ep), "ucp_ep_create");
        for (int which = 0; which < 3; ++which) {
            check(ucp_ep_rkey_unpack(made.ep, its.keys[which], &made.key[which]),
                  "ucp_ep_rkey_unpack");
        }
        made.base[0] = its.base[0];
        made.base[1] = its.base[1];
    }
}

// What the target had after the last round in which all were there.
inline std::vector<unsigned char> before_the_loss;

// Each rank puts into its own part of a target. Of what one that was killed has put some may have
// come, and its gaps are as they were.
inline void verify() {
    const std::vector<unsigned char> got = target.memory->read();
    const unsigned char *expected = common->ranks[rank_].expected;
    const size_t part = region / static_cast<size_t>(chosen.ranks);
    for (size_t i = 0; i < region; ++i) {
        const bool came_not = !before_the_loss.empty() && is_dead(static_cast<int>(i / part)) &&
                              got[i] == before_the_loss[i];
        if (got[i] != expected[i] && !came_not) {
            fail("byte " + std::to_string(i) + " of the target is " + std::to_string(got[i]) +
                 ", not " + std::to_string(expected[i]));
        }
    }
    if (!target.memory->is_well()) {
        fail("work on the GPU failed");
    }
    if (chosen.kill && before_the_loss.empty()) {
        before_the_loss = got;
    }
}

inline void close_all() {
    for (peer &one : peers) {
        if (one.ep == nullptr) {
            continue;
        }
        for (ucp_rkey_h key : one.key) {
            ucp_rkey_destroy(key);
        }
        ucp_request_param_t param = {};
        if (may_fail()) {
            param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
            param.flags = UCP_EP_CLOSE_FLAG_FORCE;
        }
        wait_for(ucp_ep_close_nbx(one.ep, &param));
    }
    check(ucp_mem_unmap(context, half_of_target), "ucp_mem_unmap");
    for (piece *one : {&source, &target, &landing}) {
        if (one->handle != nullptr) {
            check(ucp_mem_unmap(context, one->handle), "ucp_mem_unmap");
        }
    }
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

inline void read_options(int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        auto flag = [&](const char *wanted, bool *value) {
            *value = *value || name == wanted;
            return name == wanted;
        };
        if (flag("--list", &chosen.list) || flag("--outside", &chosen.outside) ||
            flag("--fences", &chosen.fences) || flag("--wakeup", &chosen.wakeup) ||
            flag("--kill", &chosen.kill) || flag("--freed", &chosen.freed) ||
            flag("--odd", &chosen.odd)) {
            continue;
        }
        const std::string value = i + 1 < argc ? argv[++i] : "";
        if (name == "--ranks") {
            chosen.ranks = std::min(std::atoi(value.c_str()), max_ranks);
        } else if (name == "--rounds") {
            chosen.rounds = std::min(std::atoi(value.c_str()), 30);
        } else if (name == "--blocks") {
            chosen.blocks = std::atoi(value.c_str());
        } else if (name == "--longest") {
            chosen.longest = static_cast<size_t>(std::atol(value.c_str()));
        } else if (name == "--seed") {
            chosen.seed = static_cast<unsigned>(std::atol(value.c_str()));
        } else if (name == "--memory") {
            chosen.memory = value;
        } else {
            std::printf("no such option: %s\n", name.c_str());
            std::exit(2);
        }
    }
}

// Each of the processes runs `run_rank`; the program's exit status.
inline int run_processes(int argc, char **argv, int (*run_rank)(int rank)) {
    read_options(argc, argv);
    void *memory = mmap(nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        std::perror("mmap");
        return 1;
    }
    common = new (memory) shared_state;
    std::vector<pid_t> children;
    for (int rank = 0; rank < chosen.ranks; ++rank) {
        const pid_t child = fork();
        if (child == 0) {
            std::exit(run_rank(rank));
        }
        children.push_back(child);
    }
    int result = 0;
    for (int left = chosen.ranks; left != 0; --left) {
        int status;
        const pid_t ended = wait(&status);
        const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && chosen.kill &&
                            ended == children[1];
        if (killed) {
            ++common->gone;
        } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            if (WIFSIGNALED(status)) {
                std::printf("a process ended by signal %d\n", WTERMSIG(status));
            }
            result = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        }
    }
    std::puts(result == 0 ? "RIGHT" : "WRONG");
    return result;
}
