// Random puts and gets with a layout on each side (cuda_nc_put_nbx, cuda_nc_get_nbx) between the
// memory of processes, every byte and every gap checked.
//
// usage: strided [--ranks N] [--rounds N] [--blocks N] [--longest BYTES] [--seed N]
//                [--memory sim|cuda|host] [--outside] [--fences] [--kill] [--freed]
//   blocks: operations of a round; longest: most packed bytes of one
//   outside, fences, kill: as in one_sided.cc
//   freed: the peer frees its memory first; operations end, as they may
#include <cuda_nc/cuda_nc.h>
#include <signal.h>

#include "test/uct/one_sided_peers.hpp"

namespace {

// A layout, and its blocks as plain loops see them. Bytes [0, span) from `lowest` on hold it.
struct side {
    cuda_nc_layout_t layout = nullptr;
    struct block {
        int64_t at;
        int64_t length;
    };
    std::vector<block> blocks;
    int64_t lowest = 0;
    size_t span = 0;

    side() = default;
    side(const side &) = delete;
    side(side &&other) noexcept { std::swap(*this, other); }
    side &operator=(side &&other) noexcept {
        std::swap(layout, other.layout);
        blocks.swap(other.blocks);
        std::swap(lowest, other.lowest);
        std::swap(span, other.span);
        return *this;
    }
    ~side() { cuda_nc_layout_destroy(layout); }

    void measure() {
        int64_t highest = INT64_MIN;
        lowest = INT64_MAX;
        for (const block &one : blocks) {
            lowest = std::min(lowest, one.at);
            highest = std::max(highest, one.at + one.length);
        }
        span = static_cast<size_t>(highest - lowest);
    }
};

void must(ucs_status_t status, const char *what) {
    if (status != UCS_OK) {
        fail(std::string(what) + ": " + cuda_nc_last_error());
    }
}

int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_below(static_cast<size_t>(most - least + 1)));
}

// Rows of one length, apart, in either direction.
side make_rows(int64_t count, int64_t length) {
    side made;
    const int64_t stride = (length + between(0, 40)) * (random_below(3) == 0 ? -1 : 1);
    for (int64_t i = 0; i < count; ++i) {
        made.blocks.push_back({i * stride, length});
    }
    must(cuda_nc_layout_create_vector(count, length, stride, &made.layout), "vector");
    return made;
}

// Planes of rows.
side make_box(int64_t planes, int64_t rows, int64_t length) {
    side made;
    const int64_t row = length + between(0, 20), plane = row * rows + between(0, 100);
    const int64_t extents[] = {planes, rows, length}, strides[] = {plane, row, 1};
    for (int64_t i = 0; i < planes * rows; ++i) {
        made.blocks.push_back({i / rows * plane + i % rows * row, length});
    }
    must(cuda_nc_layout_create_strided(3, extents, strides, 1, &made.layout), "strided");
    return made;
}

// Blocks of `unit` bytes times a random number, in random order.
side make_list(int64_t bytes, int64_t unit, bool equal) {
    side made;
    std::vector<side::block> all;
    int64_t at = 0;
    for (int64_t done = 0; done < bytes;) {
        const int64_t length = equal ? unit : std::min(bytes - done, unit * between(1, 9));
        all.push_back({at, length});
        at += length + unit * between(0, 3);
        done += length;
    }
    std::shuffle(all.begin(), all.end(), generator);
    std::vector<cuda_nc_block_t> blocks;
    for (const side::block &one : all) {
        blocks.push_back({one.at, static_cast<size_t>(one.length)});
    }
    made.blocks = all;
    must(cuda_nc_layout_create_blocks(blocks.data(), blocks.size(), &made.layout), "blocks");
    return made;
}

// `rows` * `length` bytes, laid out in a random way. No byte twice.
side make_side(int64_t rows, int64_t length) {
    side made;
    const int64_t bytes = rows * length;
    switch (random_below(6)) {
        case 0:
            made = make_rows(rows, length);
            break;
        case 1:
            made = make_rows(length, rows);
            break;
        case 2:
            made = rows % 4 == 0 ? make_box(4, rows / 4, length) : make_box(1, rows, length);
            break;
        case 3:
            made = make_list(bytes, length, true);
            break;
        case 4:
            made = make_list(bytes, between(1, 64), false);
            break;
        default:
            made = make_rows(1, bytes);
            break;
    }
    made.measure();
    return made;
}

struct pair_of_sides {
    side here, there;
    size_t here_at = 0, there_at = 0;  // of displacement 0, in the region
};

// The remote side lies in [begin, end) of its region; false: it does not fit.
bool make_pair(size_t begin, size_t end, pair_of_sides *pair) {
    const int64_t length = between(1, random_below(3) == 0 ? 300 : 32);
    const int64_t most = std::max<int64_t>(1, static_cast<int64_t>(chosen.longest) / length);
    const int64_t rows = between(1, most);
    pair->here = make_side(rows, length);
    pair->there = make_side(rows, length);
    if (pair->there.span > end - begin || pair->here.span > region) {
        return false;
    }
    const auto place = [](const side &of, size_t low, size_t high) {
        return low + random_below(high - low - of.span + 1) - static_cast<size_t>(of.lowest);
    };
    pair->here_at = place(pair->here, 0, region);
    pair->there_at = place(pair->there, begin, end);
    return true;
}

// Calls visit(place here, place there) for each byte.
template <typename Visit>
void for_each_byte(const pair_of_sides &pair, Visit &&visit) {
    size_t other = 0;
    int64_t in_other = 0;
    for (const side::block &one : pair.here.blocks) {
        for (int64_t i = 0; i < one.length; ++i) {
            if (in_other == pair.there.blocks[other].length) {
                ++other;
                in_other = 0;
            }
            visit(pair.here_at + static_cast<size_t>(one.at + i),
                  pair.there_at + static_cast<size_t>(pair.there.blocks[other].at + in_other++));
        }
    }
}

// ---- operations

long called_back = 0, to_call_back = 0;

void note_end(void *request, ucs_status_t, void *user_data) {
    ++*static_cast<long *>(user_data);
    ucp_request_free(request);
}

// Waits in one of the ways that UCP has, some of them later.
void started(void *request, bool has_callback, std::vector<void *> *requests) {
    if (UCS_PTR_IS_ERR(request) && !may_fail()) {
        fail(std::string("refused: ") + cuda_nc_last_error());
    }
    if (UCS_PTR_IS_ERR(request) && *cuda_nc_last_error() == '\0') {
        fail("an error without a sentence");
    }
    if (!UCS_PTR_IS_PTR(request)) {
        return;
    }
    if (has_callback) {
        ++to_call_back;
    } else if (random_below(4) == 0) {
        ucp_request_free(request);  // the flush tells
    } else {
        requests->push_back(request);
    }
}

ucp_request_param_t random_param(const piece &local, bool *has_callback_p) {
    ucp_request_param_t param = {};
    if (random_below(2) == 0) {
        param = with(local.handle);
    }
    *has_callback_p = random_below(3) == 0;
    if (*has_callback_p) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        param.cb.send = note_end;
        param.user_data = &called_back;
    }
    return param;
}

void put(int to, const pair_of_sides &pair, std::vector<void *> *requests) {
    const peer &other = peers[static_cast<size_t>(to)];
    bool has_callback;
    const ucp_request_param_t param = random_param(source, &has_callback);
    started(cuda_nc_put_nbx(other.ep, source.at(pair.here_at), pair.here.layout,
                            other.base[1] + pair.there_at, other.key[1], pair.there.layout, &param),
            has_callback, requests);
}

// In its own part of each target, one strip for each put.
void put_round(int round) {
    std::vector<void *> requests;
    const size_t part = region / static_cast<size_t>(chosen.ranks);
    const size_t strip = part / static_cast<size_t>(chosen.blocks);
    for (int i = 0; i < chosen.blocks; ++i) {
        for (int to = 0; to < chosen.ranks; ++to) {
            pair_of_sides pair;
            const size_t begin = part * static_cast<size_t>(rank_) + strip * static_cast<size_t>(i);
            if (to == rank_ || !make_pair(begin, begin + strip, &pair)) {
                continue;
            }
            put(to, pair, &requests);
            if (chosen.fences) {
                check(ucp_worker_fence(worker), "ucp_worker_fence");
                const size_t highest = region - pair.here.span;
                pair.here_at = random_below(highest) - static_cast<size_t>(pair.here.lowest);
                put(to, pair, &requests);
            }
            for_each_byte(pair, [&](size_t here, size_t there) {
                common->ranks[to].expected[there] = pattern(rank_, here, 0);
            });
            if (random_below(4) == 0) {
                ucp_worker_progress(worker);
            }
        }
        if (chosen.kill && rank_ == 1 && round == 1 && i == chosen.blocks / 2) {
            raise(SIGKILL);
        }
    }
    if (random_below(2) == 0) {
        flush();
    }
    end_all(requests, "an operation");
    flush();
    if (!may_fail() && called_back != to_call_back) {
        fail("callbacks: " + std::to_string(called_back) + " of " + std::to_string(to_call_back));
    }
}

void get_round() {
    std::vector<unsigned char> expected(region, 0xAA);
    landing.memory->write(expected);
    std::vector<void *> requests;
    const int from = (rank_ + 1) % chosen.ranks;
    const peer &other = peers[static_cast<size_t>(from)];
    const size_t strip = region / static_cast<size_t>(chosen.blocks);
    for (int i = 0; i < chosen.blocks; ++i) {
        pair_of_sides pair;
        const size_t begin = strip * static_cast<size_t>(i);
        if (!make_pair(begin, begin + strip, &pair)) {
            continue;
        }
        // Here and there change places: what comes lies in the strip.
        bool has_callback;
        const ucp_request_param_t param = random_param(landing, &has_callback);
        started(
            cuda_nc_get_nbx(other.ep, landing.at(pair.there_at), pair.there.layout,
                            other.base[0] + pair.here_at, other.key[0], pair.here.layout, &param),
            has_callback, &requests);
        for_each_byte(pair,
                      [&](size_t there, size_t here) { expected[here] = pattern(from, there, 0); });
    }
    end_all(requests, "an operation");
    flush();
    if (must_succeed(from) && landing.memory->read() != expected) {
        fail("a get brought wrong bytes");
    }
}

// Two rows of 64 bytes, the first of them at `begin` of the target, the second one `distance` on.
void put_outside(ucp_rkey_h key, size_t begin, int64_t distance) {
    const peer &other = peers[static_cast<size_t>((rank_ + 1) % chosen.ranks)];
    cuda_nc_layout_t rows = nullptr, far = nullptr;
    must(cuda_nc_layout_create_vector(2, 64, 128, &rows), "vector");
    must(cuda_nc_layout_create_vector(2, 64, distance, &far), "vector");
    // The request of a put that goes block by block is that of a flush.
    ucs_status_t told = UCS_OK;
    ucp_request_param_t param = with(source.handle);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = [](void *, ucs_status_t status, void *user_data) {
        *static_cast<ucs_status_t *>(user_data) = status;
    };
    param.user_data = &told;
    const ucs_status_t status = wait_for(
        cuda_nc_put_nbx(other.ep, source.at(0), rows, other.base[1] + begin, key, far, &param));
    if (status == UCS_OK && told == UCS_OK) {
        fail("a put outside of the memory succeeded");
    }
    cuda_nc_layout_destroy(rows);
    cuda_nc_layout_destroy(far);
}

// Bytes that a refused put has touched are found by verify(): who takes all of it moves nothing of
// it, not even the rows that are inside.
void put_outside_all_at_once() {
    const peer &other = peers[static_cast<size_t>((rank_ + 1) % chosen.ranks)];
    put_outside(other.key[1], region / 2 + region / 4, int64_t{64} << 20);
    constexpr size_t half = region / 2;  // what key 2 was made for
    put_outside(other.key[2], half - 128 - 64 + 1, 128);
    put_outside(other.key[2], 0, region - 64);
    put_outside(other.key[2], half, 64 + 1);
    put_outside(other.key[2], region - 64, -static_cast<int64_t>(half));
}

void refuse() {
    const peer &other = peers[static_cast<size_t>((rank_ + 1) % chosen.ranks)];
    cuda_nc_layout_t rows = nullptr, over = nullptr, more = nullptr;
    must(cuda_nc_layout_create_vector(4, 8, 16, &rows), "vector");
    must(cuda_nc_layout_create_vector(4, 8, 4, &over), "vector");
    must(cuda_nc_layout_create_vector(5, 8, 16, &more), "vector");
    ucp_request_param_t param = {}, bad = {};
    bad.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    // The text names the argument.
    auto expect_error = [](const char *argument, void *result) {
        const std::string text = cuda_nc_last_error(), begin = std::string(argument) + ":";
        if (UCS_PTR_STATUS(result) != UCS_ERR_INVALID_PARAM || text.find(begin) == text.npos) {
            fail("a wrong " + begin + " is not refused, or not by this name: " + text);
        }
    };
    char *here = source.at(0);
    const uint64_t there = other.base[1];
    const ucp_rkey_h key = other.key[1];
    const ucp_ep_h ep = other.ep;
    expect_error("ep", cuda_nc_put_nbx(nullptr, here, rows, there, key, rows, &param));
    expect_error("rkey", cuda_nc_put_nbx(ep, here, rows, there, nullptr, rows, &param));
    expect_error("param", cuda_nc_put_nbx(ep, here, rows, there, key, rows, nullptr));
    expect_error("param", cuda_nc_put_nbx(ep, here, rows, there, key, rows, &bad));
    expect_error("local", cuda_nc_put_nbx(ep, nullptr, rows, there, key, rows, &param));
    expect_error("local_layout", cuda_nc_put_nbx(ep, here, nullptr, there, key, rows, &param));
    expect_error("remote_layout", cuda_nc_put_nbx(ep, here, rows, there, key, more, &param));
    expect_error("remote_layout", cuda_nc_put_nbx(ep, here, rows, there, key, over, &param));
    expect_error("local_layout", cuda_nc_get_nbx(ep, here, over, there, key, rows, &param));
    expect_error("remote_address",
                 cuda_nc_put_nbx(ep, here, rows, UINT64_MAX - 4, key, rows, &param));
    for (cuda_nc_layout_t one : {rows, over, more}) {
        cuda_nc_layout_destroy(one);
    }
}

int run_rank(int rank) {
    rank_ = rank;
    generator.seed(chosen.seed * 1000 + static_cast<unsigned>(rank));
    open();
    int step = 0;
    barrier(step++);
    connect();
    if (chosen.outside) {
        // Endpoints that are still connecting take blocks alone.
        const peer &other = peers[static_cast<size_t>((rank_ + 1) % chosen.ranks)];
        put_outside(other.key[1], region / 2 + region / 4, int64_t{64} << 20);
    }
    refuse();
    if (chosen.freed) {
        if (rank_ == 1) {
            check(ucp_mem_unmap(context, target.handle), "ucp_mem_unmap");
            target.handle = nullptr;
            target.memory.reset();
        }
        barrier(step++);
        lost_a_peer = true;  // errors are right now
    }
    for (int round = 0; round < chosen.rounds; ++round) {
        put_round(round);
        get_round();
        if (chosen.outside) {
            put_outside_all_at_once();
        }
        barrier(step++);
        if (!chosen.freed) {
            verify();
        }
        barrier(step++);
    }
    close_all();
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    chosen.blocks = 24;
    chosen.longest = 30000;
    return run_processes(argc, argv, run_rank);
}
