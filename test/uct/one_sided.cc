// Random puts and gets between the GPU memory of processes, by UCP's one-sided calls, every byte
// and every gap checked. What a put should leave is written down by plain loops in shared memory.
//
// usage: one_sided [--ranks N] [--rounds N] [--blocks N] [--longest BYTES] [--seed N]
//                  [--memory sim|cuda] [--list] [--outside] [--fences] [--wakeup] [--kill]
//   list: UCX's lists of scattered buffers in place of single puts (UCX 1.22 and later)
//   outside: a put beyond the registered memory must fail, and nothing else may
//   fences: a second put of the same bytes after a fence wins
//   kill: rank 1 is killed in the middle; the others' operations end, and they end
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

namespace {

constexpr int max_ranks = 4;
constexpr size_t region = 4 << 20;  // bytes of each of a process's three pieces of memory
constexpr auto patience = std::chrono::seconds(60);

struct {
    int ranks = 2, rounds = 6, blocks = 400;
    size_t longest = 20000;
    unsigned seed = 1;
    std::string memory = "sim";
    bool list = false, outside = false, fences = false, wakeup = false, kill = false;
} chosen;

struct of_rank {
    char address[4096];
    size_t address_length;
    char keys[2][1024];  // of the source, of the target
    size_t key_length[2];
    uint64_t base[2];
    unsigned char expected[region];  // in the target
};

struct shared_state {
    std::atomic<int> arrived[64];
    std::atomic<int> gone;
    of_rank ranks[max_ranks];
};
shared_state *common;

int rank_;
ucp_context_h context;
ucp_worker_h worker;
std::mt19937_64 generator;
bool lost_a_peer = false;

[[noreturn]] void fail(const std::string &what) {
    std::printf("seed %u: rank %d: %s\n", chosen.seed, rank_, what.c_str());
    std::fflush(stdout);
    _exit(1);
}

void check(ucs_status_t status, const char *what) {
    if (status != UCS_OK) {
        fail(std::string(what) + ": " + ucs_status_string(status));
    }
}

size_t random_below(size_t limit) {
    return generator() % limit;
}

void barrier(int which) {
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

unsigned char pattern(int rank, size_t i, unsigned salt) {
    return static_cast<unsigned char>(
        ((i + 1) * 0x9E3779B97F4A7C15ull + static_cast<unsigned>(rank) * 77 + salt * 131) >> 40);
}

struct piece {
    std::unique_ptr<test_memory> memory;
    ucp_mem_h handle = nullptr;
    char *at(size_t offset) const { return static_cast<char *>(memory->address()) + offset; }
    void register_it() {
        ucp_mem_map_params_t params = {};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                            UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
        params.address = memory->address();
        params.length = region;
        params.memory_type = UCS_MEMORY_TYPE_CUDA;
        check(ucp_mem_map(context, &params, &handle), "ucp_mem_map");
    }
};
piece source, target, landing;

struct peer {
    ucp_ep_h ep = nullptr;
    ucp_rkey_h key[2] = {};
    uint64_t base[2] = {};
};
std::vector<peer> peers;

void on_error(void *, ucp_ep_h, ucs_status_t) {
    lost_a_peer = true;
}

bool may_fail() {
    return chosen.kill || lost_a_peer;
}

ucs_status_t wait_for(void *request) {
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

void end_well(void *request, const char *what) {
    const ucs_status_t status = wait_for(request);
    if (!may_fail()) {
        check(status, what);
    }
}

ucp_request_param_t with(ucp_mem_h handle) {
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.memh = handle;
    param.memory_type = UCS_MEMORY_TYPE_CUDA;
    return param;
}

// Blocks of the part of a region that is this rank's, in random order, none over another.
struct block {
    size_t here, there, length;
};

std::vector<block> random_blocks() {
    const size_t part = region / static_cast<size_t>(chosen.ranks);
    const size_t begin = part * static_cast<size_t>(rank_);
    std::vector<block> all;
    for (size_t at = begin + random_below(64); static_cast<int>(all.size()) < chosen.blocks;) {
        const size_t longest = random_below(4) == 0 ? 64 : chosen.longest;
        const size_t length = 1 + random_below(longest);
        if (at + length > begin + part) {
            break;
        }
        all.push_back({random_below(region - length), at, length});
        at += length + random_below(200);
    }
    std::shuffle(all.begin(), all.end(), generator);
    return all;
}

void expect(int to, const block &one, unsigned salt) {
    for (size_t i = 0; i < one.length; ++i) {
        common->ranks[to].expected[one.there + i] = pattern(rank_, one.here + i, salt);
    }
}

void put_one_by_one(int to, const std::vector<block> &blocks, std::vector<void *> *requests) {
    const ucp_request_param_t param = with(source.handle);
    for (const block &one : blocks) {
        requests->push_back(ucp_put_nbx(peers[static_cast<size_t>(to)].ep, source.at(one.here),
                                        one.length,
                                        peers[static_cast<size_t>(to)].base[1] + one.there,
                                        peers[static_cast<size_t>(to)].key[1], &param));
        if (random_below(50) == 0) {
            ucp_worker_progress(worker);
        }
    }
}

#if UCP_API_VERSION >= UCP_VERSION(1, 22)
#define HAVE_LISTS 1
#endif

void put_list(int to, const std::vector<block> &blocks, std::vector<void *> *requests);

void put_all(int to, const std::vector<block> &blocks, std::vector<void *> *requests) {
    if (chosen.list) {
        put_list(to, blocks, requests);
    } else {
        put_one_by_one(to, blocks, requests);
    }
}

void flush() {
    const ucp_request_param_t param = {};
    if (random_below(2) == 0) {
        end_well(ucp_worker_flush_nbx(worker, &param), "ucp_worker_flush_nbx");
        return;
    }
    for (const peer &one : peers) {
        if (one.ep != nullptr) {
            end_well(ucp_ep_flush_nbx(one.ep, &param), "ucp_ep_flush_nbx");
        }
    }
}

void put_round(int round) {
    for (int to = 0; to < chosen.ranks; ++to) {
        if (to == rank_) {
            continue;
        }
        std::vector<void *> requests;
        const std::vector<block> blocks = random_blocks();
        put_all(to, blocks, &requests);
        for (const block &one : blocks) {
            expect(to, one, 0);
        }
        if (chosen.fences) {
            check(ucp_worker_fence(worker), "ucp_worker_fence");
            std::vector<block> again = blocks;
            for (block &one : again) {
                one.here = random_below(region - one.length);
                expect(to, one, 0);
            }
            put_all(to, again, &requests);
        }
        if (chosen.kill && rank_ == 1 && round == 1) {
            raise(SIGKILL);
        }
        for (void *one : requests) {
            end_well(one, "a put");
        }
    }
    flush();
}

void get_round() {
    std::vector<unsigned char> expected(region, 0xAA);
    landing.memory->write(expected);
    const ucp_request_param_t param = with(landing.handle);
    std::vector<void *> requests;
    const int from = (rank_ + 1) % chosen.ranks;
    const peer &other = peers[static_cast<size_t>(from)];
    for (const block &one : random_blocks()) {
        requests.push_back(ucp_get_nbx(other.ep, landing.at(one.there), one.length,
                                       other.base[0] + one.here, other.key[0], &param));
        for (size_t i = 0; i < one.length; ++i) {
            expected[one.there + i] = pattern(from, one.here + i, 0);
        }
    }
    for (void *one : requests) {
        end_well(one, "a get");
    }
    if (!may_fail() && landing.memory->read() != expected) {
        fail("a get brought wrong bytes");
    }
}

void put_outside() {
    const int to = (rank_ + 1) % chosen.ranks;
    const peer &other = peers[static_cast<size_t>(to)];
    const ucp_request_param_t param = with(source.handle);
    // The allocation may be a little longer than what was asked for; not by so much.
    const ucs_status_t status = wait_for(ucp_put_nbx(
        other.ep, source.at(0), 4096, other.base[1] + (uint64_t(64) << 20), other.key[1], &param));
    if (status == UCS_OK) {
        fail("a put outside of the memory succeeded");
    }
}

void open() {
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | (chosen.wakeup ? UCP_FEATURE_WAKEUP : 0);
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
            void *key;
            size_t length;
            check(ucp_rkey_pack(context, one->handle, &key, &length), "ucp_rkey_pack");
            if (length > sizeof(own.keys[0])) {
                fail("a key is longer than thought");
            }
            std::memcpy(own.keys[which], key, length);
            own.key_length[which] = length;
            own.base[which] = reinterpret_cast<uint64_t>(one->memory->address());
            ucp_rkey_buffer_release(key);
            ++which;
        }
    }
    std::memset(own.expected, 0x55, region);
}

void connect() {
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
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.cb = on_error;
        check(ucp_ep_create(worker, &params, &made.ep), "ucp_ep_create");
        for (int which = 0; which < 2; ++which) {
            check(ucp_ep_rkey_unpack(made.ep, its.keys[which], &made.key[which]),
                  "ucp_ep_rkey_unpack");
            made.base[which] = its.base[which];
        }
    }
}

void verify() {
    const std::vector<unsigned char> got = target.memory->read();
    const unsigned char *expected = common->ranks[rank_].expected;
    for (size_t i = 0; i < region; ++i) {
        if (got[i] != expected[i]) {
            fail("byte " + std::to_string(i) + " of the target is " + std::to_string(got[i]) +
                 ", not " + std::to_string(expected[i]));
        }
    }
    if (!target.memory->is_well()) {
        fail("work on the GPU failed");
    }
}

void close_all() {
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
    for (piece *one : {&source, &target, &landing}) {
        check(ucp_mem_unmap(context, one->handle), "ucp_mem_unmap");
    }
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

int run_rank(int rank) {
    rank_ = rank;
    generator.seed(chosen.seed * 1000 + static_cast<unsigned>(rank));
    open();
    int step = 0;
    barrier(step++);
    connect();
    for (int round = 0; round < chosen.rounds; ++round) {
        put_round(round);
        get_round();
        if (chosen.outside) {
            put_outside();
        }
        barrier(step++);
        if (!chosen.kill) {
            verify();
        }
        barrier(step++);
    }
    close_all();
    return 0;
}

void read_options(int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        auto flag = [&](const char *wanted, bool *value) {
            *value = *value || name == wanted;
            return name == wanted;
        };
        if (flag("--list", &chosen.list) || flag("--outside", &chosen.outside) ||
            flag("--fences", &chosen.fences) || flag("--wakeup", &chosen.wakeup) ||
            flag("--kill", &chosen.kill)) {
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

#ifdef HAVE_LISTS
// One call for all blocks.
void put_list(int to, const std::vector<block> &blocks, std::vector<void *> *requests) {
    const peer &other = peers[static_cast<size_t>(to)];
    std::vector<void *> buffers;
    std::vector<size_t> lengths;
    std::vector<ucp_mem_h> handles(blocks.size(), source.handle);
    std::vector<uint64_t> addresses;
    std::vector<ucp_rkey_h> keys(blocks.size(), other.key[1]);
    for (const block &one : blocks) {
        buffers.push_back(source.at(one.here));
        lengths.push_back(one.length);
        addresses.push_back(other.base[1] + one.there);
    }
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
    param.memory_type = UCS_MEMORY_TYPE_CUDA;
    param.remote = &remote;
    param.remote_count = blocks.size();
    void *request = ucp_put_nbx(other.ep, &local, blocks.size(), UCP_REMOTE_ADDR_INVALID,
                                UCP_RKEY_INVALID, &param);
    end_well(request, "a list of puts");  // before the arrays go
    static_cast<void>(requests);
}
#else
void put_list(int, const std::vector<block> &, std::vector<void *> *) {
    std::printf("SKIP: this UCX has no lists\n");
    std::fflush(stdout);
    _exit(77);
}
#endif

}  // namespace

int main(int argc, char **argv) {
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
