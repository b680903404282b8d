#include "random_types/batch.hpp"

#include <cstdio>
#include <vector>

#include "random_types/arena.hpp"
#include "random_types/exchange.hpp"
#include "random_types/local.hpp"
#include "random_types/message.hpp"

namespace mpi_test {
namespace {

void report(int rank, uint64_t seed, int number, const message &m, size_t at, const char *what) {
    std::printf(
        "WRONG %s: rank %d, seed %llu, batch of one from type %d: sender %d, byte %zu of its "
        "region; send %d x %s%s; receive %d x %s%s\n",
        what, rank, static_cast<unsigned long long>(seed), number, m.sender, at, m.from.count,
        m.from.type.text().substr(0, 600).c_str(), m.from.bottom ? " at MPI_BOTTOM" : "",
        m.to.count, m.to.type.text().substr(0, 600).c_str(), m.to.bottom ? " at MPI_BOTTOM" : "");
    std::fflush(stdout);
}

}  // namespace

int run_batch(int rank, memory &device, const options &o, int first) {
    std::vector<message> messages;
    size_t used = 0;
    int wrong = 0;
    for (int i = 0; i < o.batch; ++i) {
        random_stream random{o.seed, static_cast<uint64_t>(first + i)};
        messages.push_back(random_message(random, o.largest));
        message &m = messages.back();
        place(random, m.from, &used);
        place(random, m.to, &used);
        for (const made_type *type : {&m.from.type, &m.to.type}) {
            if (!type->agrees()) {
                report(rank, o.seed, first + i, m, 0, "BOUNDS");
                ++wrong;
            }
        }
        if (o.verbose && rank == 0) {
            report(rank, o.seed, first + i, m, 0, "(no: verbose)");
        }
    }
    std::vector<char> content[2] = {std::vector<char>(used), std::vector<char>(used)};
    for (uint64_t owner : {0, 1}) {
        random_stream{o.seed, static_cast<uint64_t>(first), 77 + owner}.fill(content[owner].data(),
                                                                             used);
    }
    arena mine(device, used);
    mine.fill(content[rank]);
    if (o.local) {
        for (const message *m : move_locally(rank, mine, messages, content[rank])) {
            report(rank, o.seed, first + static_cast<int>(m - messages.data()), *m, 0,
                   "PACKED BYTES");
            ++wrong;
        }
    } else {
        exchange(rank, mine, messages, (first / o.batch) % 2 != 0);
    }
    mine.fetch();
    for (const message &m : messages) {
        if (o.local) {
            expect_local(rank, mine, m, content);
        } else if (m.sender != rank) {
            mine.expect(m.to, m.from.bytes().pack(content[m.sender].data() + m.from.base));
            mine.forgive_padding(m.to);
        }
    }
    if (mine.right()) {
        return wrong;
    }
    for (size_t i = 0; i < messages.size(); ++i) {
        const message &m = messages[i];
        size_t end = i + 1 < messages.size() ? messages[i + 1].from.region : used;
        size_t at = mine.first_wrong(m.from.region, end);
        if (at != std::string::npos) {
            bool in_send = at < m.to.region;
            report(rank, o.seed, first + static_cast<int>(i), m,
                   at - (in_send ? m.from.region : m.to.region),
                   in_send ? "SEND BUFFER" : "RECEIVE BUFFER");
            ++wrong;
        }
    }
    return wrong;
}

}  // namespace mpi_test
