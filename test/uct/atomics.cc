// Atomic operations of UCP on memory that has keys of ours too, between puts and gets of the same
// bytes. The numbers tell whether each came when it should: behind a fence, or a flush.
//
// usage: atomics [--ranks N] [--rounds N] [--blocks N] [--seed N] [--memory sim|cuda|host]
//   blocks: numbers of each round
//   GPU memory: UCX has no atomic operations within a machine; each is to end with an error, and to
//   touch nothing

#include "test/uct/one_sided_peers.hpp"

namespace {

constexpr size_t stride = 16;  // bytes from number to number; what lies between is a gap

// The numbers that this rank has at another: each rank has a part of each target.
size_t place(int index) {
    return region / static_cast<size_t>(chosen.ranks) * static_cast<size_t>(rank_) +
           stride * static_cast<size_t>(index);
}

uint64_t number(int round, int index) {
    return (static_cast<uint64_t>(round) << 40) + (static_cast<uint64_t>(index) << 8) + 17;
}

void expect(int to, int index, uint64_t value) {
    std::memcpy(common->ranks[to].expected + place(index), &value, sizeof(value));
}

ucp_request_param_t atomic_param(uint64_t *reply) {
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype = ucp_dt_make_contig(sizeof(uint64_t));
    if (reply != nullptr) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        param.reply_buffer = reply;
    }
    return param;
}

void *atomic(int to, ucp_atomic_op_t what, const uint64_t &operand, int index, uint64_t *reply) {
    const peer &other = peers[static_cast<size_t>(to)];
    const ucp_request_param_t param = atomic_param(reply);
    return ucp_atomic_op_nbx(other.ep, what, &operand, 1, other.base[1] + place(index),
                             other.key[1], &param);
}

void *put(int to, int index, size_t source_place) {
    const peer &other = peers[static_cast<size_t>(to)];
    const ucp_request_param_t param = with(source.handle);
    return ucp_put_nbx(other.ep, source.at(source_place), sizeof(uint64_t),
                       other.base[1] + place(index), other.key[1], &param);
}

void end_all(std::vector<void *> *requests) {
    for (void *one : *requests) {
        end_well(one, "an operation");
    }
    requests->clear();
}

// Behind puts: a fence or a flush of any kind.
void order() {
    if (random_below(2) == 0) {
        check(ucp_worker_fence(worker), "ucp_worker_fence");
    } else {
        flush();
    }
}

// Behind atomic operations: UCX carries them out by messages, and its flush and fence of a worker
// do not wait for all of them (UCX 1.22, with no plugin of ours in the process either).
void order_atomics() {
    const ucp_request_param_t param = {};
    for (const peer &one : peers) {
        if (one.ep != nullptr) {
            end_well(ucp_ep_flush_nbx(one.ep, &param), "ucp_ep_flush_nbx");
        }
    }
}

// The source holds the numbers of the round.
void fill_source(int round) {
    std::vector<unsigned char> bytes(region, 0x33);
    for (int i = 0; i < chosen.blocks; ++i) {
        const uint64_t value = number(round, i);
        std::memcpy(&bytes[stride * static_cast<size_t>(i)], &value, sizeof(value));
    }
    source.memory->write(bytes);
}

// What adds comes behind what was put, and the next put behind that.
void put_and_add(int round, int to) {
    std::vector<void *> requests;
    fill_source(round);
    for (int i = 0; i < chosen.blocks; ++i) {
        requests.push_back(put(to, i, stride * static_cast<size_t>(i)));
    }
    order();
    static const uint64_t one = 1;
    for (int i = 0; i < chosen.blocks; ++i) {
        requests.push_back(atomic(to, UCP_ATOMIC_OP_ADD, one, i, nullptr));
        expect(to, i, number(round, i) + 1);
    }
    end_all(&requests);
    order_atomics();
    for (int i = 0; i < chosen.blocks; i += 3) {
        requests.push_back(put(to, i, stride * static_cast<size_t>(i)));
        expect(to, i, number(round, i));
    }
    order();
    end_all(&requests);
}

// What an atomic operation brings back is what was put, or swapped in, before it; a get behind it
// brings what it left.
void swap_and_get(int round, int to) {
    const peer &other = peers[static_cast<size_t>(to)];
    std::vector<void *> requests;
    std::vector<uint64_t> replies(static_cast<size_t>(chosen.blocks)),
        operands(static_cast<size_t>(chosen.blocks));
    for (int i = 0; i < chosen.blocks; ++i) {
        const auto at = static_cast<size_t>(i);
        operands[at] = number(round, i) * 3;
        requests.push_back(atomic(to, UCP_ATOMIC_OP_SWAP, operands[at], i, &replies[at]));
    }
    end_all(&requests);
    order_atomics();
    const ucp_request_param_t param = with(landing.handle);
    for (int i = 0; i < chosen.blocks; ++i) {
        requests.push_back(ucp_get_nbx(other.ep, landing.at(stride * static_cast<size_t>(i)),
                                       sizeof(uint64_t), other.base[1] + place(i), other.key[1],
                                       &param));
    }
    end_all(&requests);
    const std::vector<unsigned char> got = landing.memory->read();
    for (int i = 0; i < chosen.blocks; ++i) {
        const auto at = static_cast<size_t>(i);
        uint64_t left, before = number(round, i) + (i % 3 == 0 ? 0 : 1);
        std::memcpy(&left, &got[stride * at], sizeof(left));
        if (replies[at] != before) {
            fail("a swap brought " + std::to_string(replies[at]) + ", not " +
                 std::to_string(before));
        }
        if (left != operands[at]) {
            fail("a get behind a swap brought " + std::to_string(left));
        }
        expect(to, i, operands[at]);
    }
}

// Puts before and behind are carried out.
void put_and_be_refused(int round, int to) {
    std::vector<void *> requests;
    fill_source(round);
    uint64_t reply = 0;
    static const uint64_t one = 1;
    for (int i = 0; i < chosen.blocks; ++i) {
        requests.push_back(put(to, i, stride * static_cast<size_t>(i)));
        expect(to, i, number(round, i));
        const bool fetches = i % 2 == 0;
        if (i % 50 == 0 && wait_for(atomic(to, fetches ? UCP_ATOMIC_OP_SWAP : UCP_ATOMIC_OP_ADD,
                                           one, i, fetches ? &reply : nullptr)) == UCS_OK) {
            fail("an atomic operation on GPU memory succeeded");
        }
    }
    end_all(&requests);
}

int run_rank(int rank) {
    rank_ = rank;
    generator.seed(chosen.seed * 1000 + static_cast<unsigned>(rank));
    more_features = UCP_FEATURE_AMO64;
    error_mode = UCP_ERR_HANDLING_MODE_NONE;  // the other has no atomic operations within a machine
    open();
    int step = 0;
    barrier(step++);
    connect();
    for (int round = 0; round < chosen.rounds; ++round) {
        for (int to = 0; to < chosen.ranks; ++to) {
            if (to == rank_) {
                continue;
            }
            if (memory_type() == UCS_MEMORY_TYPE_CUDA) {
                put_and_be_refused(round, to);
            } else {
                put_and_add(round, to);
                swap_and_get(round, to);
            }
        }
        order_atomics();
        barrier(step++);
        verify();
        barrier(step++);
    }
    close_all();
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    return run_processes(argc, argv, run_rank);
}
