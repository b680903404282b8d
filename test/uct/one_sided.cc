// Random puts and gets between the GPU memory of processes, by UCP's one-sided calls, every byte
// and every gap checked. What a put should leave is written down by plain loops in shared memory.
//
// usage: one_sided [--ranks N] [--rounds N] [--blocks N] [--longest BYTES] [--seed N]
//                  [--memory sim|cuda|host] [--list] [--outside] [--fences] [--wakeup]
//                  [--kill] [--freed] [--odd]
//   list: UCX's lists of scattered buffers in place of single puts (UCX 1.22 and later)
//   outside: puts and gets beyond the registered memory must fail, within its allocation too, and
//            nothing else may
//   fences: a second put of the same bytes after a fence wins
//   freed: after each round targets are freed, allocated and registered again
//   kill: rank 1 is killed in the middle; the others' operations end, those among themselves well
//         and with the right bytes, and they end
//   odd: several puts of the same bytes at once leave those of any of them; blocks of no length;
//        the same block again and again

#include <signal.h>

#include "test/uct/one_sided_peers.hpp"

namespace {

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
        requests->push_back(
            ucp_put_nbx(peers[static_cast<size_t>(to)].ep, source.at(one.here), one.length,
                        peers[static_cast<size_t>(to)].base[1] + one.there,
                        peers[static_cast<size_t>(to)].target_key(one.there + one.length), &param));
        if (random_below(50) == 0) {
            ucp_worker_progress(worker);
        }
    }
}

// One call for all blocks; returns when it has ended.
ucs_status_t put_list(const peer &other, const std::vector<block> &blocks,
                      const std::vector<ucp_rkey_h> &keys);

void put_all(int to, const std::vector<block> &blocks, std::vector<void *> *requests) {
    if (chosen.list) {
        const peer &other = peers[static_cast<size_t>(to)];
        std::vector<ucp_rkey_h> keys;
        for (const block &one : blocks) {
            keys.push_back(other.target_key(one.there + one.length));
        }
        const ucs_status_t status = put_list(other, blocks, keys);
        if (must_succeed(to)) {
            check(status, "a list of puts");
        }
    } else {
        put_one_by_one(to, blocks, requests);
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
        end_all(requests, "a put", to);
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
    end_all(requests, "a get", from);
    if (!is_dead(from) && landing.memory->read() != expected) {
        fail("a get brought wrong bytes");
    }
}

void must_fail(ucs_status_t status, const char *what) {
    if (status == UCS_OK) {
        fail(std::string(what) + " outside of the registered memory succeeded");
    }
}

// Bytes that a refused put has touched are found by verify().
void go_outside() {
    const int to = (rank_ + 1) % chosen.ranks;
    const peer &other = peers[static_cast<size_t>(to)];
    const ucp_request_param_t param = with(source.handle), getting = with(landing.handle);
    must_fail(wait_for(ucp_put_nbx(other.ep, source.at(0), 4096,
                                   other.base[1] + (uint64_t(64) << 20), other.key[1], &param)),
              "a put");
    // The other half of the target is of the same allocation, and was not registered with this key.
    constexpr size_t half = region / 2;
    landing.memory->write(std::vector<unsigned char>(region, 0xAA));
    for (size_t there : {half - 4095, half - 1, half, region - 4096}) {
        const uint64_t address = other.base[1] + there;
        must_fail(
            wait_for(ucp_put_nbx(other.ep, source.at(0), 4096, address, other.key[2], &param)),
            "a put");
        must_fail(wait_for(ucp_get_nbx(other.ep, landing.at(there), 4096, address, other.key[2],
                                       &getting)),
                  "a get");
        if (chosen.list) {  // what is before the wrong block is moved
            const size_t part = region / static_cast<size_t>(chosen.ranks);
            const block right = {random_below(region - 64), part * static_cast<size_t>(rank_), 64};
            must_fail(put_list(other, {right, {0, there, 4096}}, {other.key[1], other.key[2]}),
                      "a list of puts");
            expect(to, right, 0);
        }
    }
    if (landing.memory->read() != std::vector<unsigned char>(region, 0xAA)) {
        fail("a get that was refused brought bytes");
    }
}

// Into this rank's part of the next one's target, and read back.
void put_oddly() {
    const int to = (rank_ + 1) % chosen.ranks;
    const peer &other = peers[static_cast<size_t>(to)];
    const size_t part = region / static_cast<size_t>(chosen.ranks);
    const size_t length = 1 + random_below(chosen.longest);
    const size_t there = part * static_cast<size_t>(rank_) + random_below(part - length);
    std::vector<block> blocks;
    for (int i = 0; i < 6; ++i) {
        blocks.push_back({random_below(region - length), there, length});
        blocks.push_back(blocks.back());
        if (!chosen.list) {  // UCX refuses them in its lists
            blocks.push_back({random_below(region), there, 0});
        }
    }
    std::vector<void *> requests;
    put_all(to, blocks, &requests);
    end_all(requests, "a put", to);
    flush();
    const ucp_request_param_t getting = with(landing.handle);
    for (int again = 0; again < 3; ++again) {
        end_well(ucp_get_nbx(other.ep, landing.at(there), length, other.base[1] + there,
                             other.key[1], &getting),
                 "a get");
    }
    const std::vector<unsigned char> got = landing.memory->read();
    for (size_t i = 0; i < length; ++i) {
        if (std::none_of(blocks.begin(), blocks.end(), [&](const block &one) {
                return one.length != 0 && got[there + i] == pattern(rank_, one.here + i, 0);
            })) {
            fail("byte " + std::to_string(i) + " of several puts is of none of them");
        }
    }
    requests.clear();
    put_all(to, {blocks.front()}, &requests);
    end_all(requests, "a put", to);
    flush();
    expect(to, blocks.front(), 0);
}

int run_rank(int rank) {
    rank_ = rank;
    generator.seed(chosen.seed * 1000 + static_cast<unsigned>(rank));
    open();
    int step = 0, same_addresses = 0;
    barrier(step++);
    connect();
    for (int round = 0; round < chosen.rounds; ++round) {
        put_round(round);
        get_round();
        if (chosen.outside) {
            go_outside();
        }
        if (chosen.odd) {
            put_oddly();
        }
        barrier(step++);
        verify();
        if (chosen.freed) {
            forget_targets();
        }
        barrier(step++);
        if (chosen.freed) {
            same_addresses += renew_target();
            barrier(step++);
            find_targets();
        }
    }
    if (chosen.freed) {
        std::printf("rank %d: the same address %d times of %d\n", rank_, same_addresses,
                    chosen.rounds);
    }
    close_all();
    return 0;
}

ucs_status_t put_list(const peer &other, const std::vector<block> &blocks,
                      const std::vector<ucp_rkey_h> &keys) {
    std::vector<void *> buffers;
    std::vector<size_t> lengths;
    std::vector<uint64_t> addresses;
    for (const block &one : blocks) {
        buffers.push_back(source.at(one.here));
        lengths.push_back(one.length);
        addresses.push_back(other.base[1] + one.there);
    }
    return put_lists(other, buffers, lengths, addresses, keys);
}

}  // namespace

int main(int argc, char **argv) {
    return run_processes(argc, argv, run_rank);
}
