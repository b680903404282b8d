// Puts, gets and copies of very many blocks of one byte: right bytes or an error, and memory that
// does not grow with what is under way.
//
// usage: long_lists [--blocks N] [--memory sim|host] [--list] [--outside] [--seed N]
//   blocks: up to 10^7; list: by one list of UCX's (UCX 1.22 and later), else by the C API's
//   layouts outside: nobody takes so many at once: the C API's call ends with an error
//
// Prints "rank R: grew N MiB", by which the process has grown from the first call to the last.

// Two bytes for each block, and some more.
#define PIECE_BYTES (20000100 + 4096)

#include <cuda_nc/cuda_nc.h>
#include <sys/resource.h>

#include "test/uct/one_sided_peers.hpp"

namespace {

// Byte `block` of what travels lies in one of two places there: so no table of it is regular.
size_t place(size_t block, unsigned salt) {
    return 2 * block + (pattern(7, block, salt) & 1);
}
constexpr unsigned here_salt = 1, there_salt = 2;

size_t blocks() {
    return static_cast<size_t>(chosen.blocks);
}

double resident_mebibytes() {
    rusage used = {};
    getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_maxrss) / 1024;
}

cuda_nc_layout_t make_layout(unsigned salt) {
    std::vector<cuda_nc_block_t> all(blocks());
    for (size_t i = 0; i < all.size(); ++i) {
        all[i] = {static_cast<int64_t>(place(i, salt)), 1};
    }
    cuda_nc_layout_t made = nullptr;
    if (cuda_nc_layout_create_blocks(all.data(), all.size(), &made) != UCS_OK) {
        fail(cuda_nc_last_error());
    }
    return made;
}

ucs_status_t move_layouts(const peer &other, bool puts) {
    cuda_nc_layout_t here = make_layout(here_salt), there = make_layout(there_salt);
    const piece &local = puts ? source : landing;
    const ucp_request_param_t param = with(local.handle);
    void *request = puts ? cuda_nc_put_nbx(other.ep, local.at(0), here, other.base[1], other.key[1],
                                           there, &param)
                         : cuda_nc_get_nbx(other.ep, local.at(0), here, other.base[1], other.key[1],
                                           there, &param);
    if (UCS_PTR_IS_ERR(request)) {
        std::printf("rank %d: %s\n", rank_, cuda_nc_last_error());
    }
    const ucs_status_t status = wait_for(request);
    cuda_nc_layout_destroy(here);
    cuda_nc_layout_destroy(there);
    return status;
}

// Within this process, from the source to the landing, and what it should leave there.
void copy_layouts(std::vector<unsigned char> *expected) {
    cuda_nc_layout_t from = make_layout(here_salt), to = make_layout(there_salt);
    if (cuda_nc_copy(from, source.at(0), to, landing.at(0), nullptr) != UCS_OK) {
        fail(cuda_nc_last_error());
    }
    if (chosen.memory == "sim") {
        check(cuda_nc_sim_stream_synchronize(nullptr), "a copy");
    }
    cuda_nc_layout_destroy(from);
    cuda_nc_layout_destroy(to);
    for (size_t i = 0; i < blocks(); ++i) {
        (*expected)[place(i, there_salt)] = pattern(0, place(i, here_salt), 0);
    }
}

ucs_status_t put_list(const peer &other) {
    std::vector<void *> buffers(blocks());
    std::vector<size_t> lengths(blocks(), 1);
    std::vector<uint64_t> addresses(blocks());
    std::vector<ucp_rkey_h> keys(blocks(), other.key[1]);
    for (size_t i = 0; i < blocks(); ++i) {
        buffers[i] = source.at(place(i, here_salt));
        addresses[i] = other.base[1] + place(i, there_salt);
    }
    return put_lists(other, buffers, lengths, addresses, keys);
}

// What the whole of it leaves at the target, and a get of that at the origin.
void move_all(const peer &other) {
    check(chosen.list ? put_list(other) : move_layouts(other, true), "a put");
    flush();
    unsigned char *there = common->ranks[1].expected;
    for (size_t i = 0; i < blocks(); ++i) {
        there[place(i, there_salt)] = pattern(0, place(i, here_salt), 0);
    }
    if (chosen.list) {
        return;
    }
    std::vector<unsigned char> expected(region, 0xAA);
    landing.memory->write(expected);
    check(move_layouts(other, false), "a get");
    for (size_t i = 0; i < blocks(); ++i) {
        expected[place(i, here_salt)] = pattern(0, place(i, here_salt), 0);
    }
    if (landing.memory->read() != expected) {
        fail("a get brought wrong bytes");
    }
    std::fill(expected.begin(), expected.end(), 0xAA);
    landing.memory->write(expected);
    copy_layouts(&expected);
    if (!landing.memory->is_well() || landing.memory->read() != expected) {
        fail("a copy brought wrong bytes");
    }
}

int run_rank(int rank) {
    rank_ = rank;
    generator.seed(chosen.seed);
    if (blocks() * 2 + 1 > region) {
        fail("so many blocks do not fit");
    }
    open();
    int step = 0;
    barrier(step++);
    connect();
    if (rank_ == 0) {
        const peer &other = peers[1];
        // The endpoint is connected behind it.
        const ucp_request_param_t param = with(landing.handle);
        check(wait_for(
                  ucp_get_nbx(other.ep, landing.at(0), 4096, other.base[0], other.key[0], &param)),
              "a get");
        const double before = resident_mebibytes();
        if (!chosen.outside) {
            move_all(other);
        } else if (move_layouts(other, true) != UCS_ERR_EXCEEDS_LIMIT) {
            fail("so many blocks are not refused");
        }
        std::printf("rank 0: grew %.0f MiB\n", resident_mebibytes() - before);
        flush();
    }
    barrier(step++);
    if (!chosen.outside) {
        verify();
    }
    barrier(step++);
    close_all();
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    return run_processes(argc, argv, run_rank);
}
