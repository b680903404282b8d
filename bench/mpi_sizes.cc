// Two ranks exchange vectors of several sizes in GPU memory, and contiguous bytes as the measure:
// half round trips, both directions at once, and many messages at once. Every byte is checked.
//
//   mpirun -np 2 mpi_sizes [--memory host|cuda|sim] [--repeats N] [--label TEXT] [--largest BYTES]
//                          [--smallest BYTES] [--contiguous] [--block BYTES] [--course]
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/two_ranks.hpp"
#include "tools/perftest/support/statistics.hpp"

namespace {

struct options : two_ranks {
    int repeats = 200;
    size_t smallest = 0, largest = size_t(64) << 20;
    long block = -1;  // all
    bool contiguous = false, course = false;
} chosen;

int wrong_;

unsigned char pattern(size_t i, int salt) {
    return static_cast<unsigned char>((i + 1) * 0x9E3779B97F4A7C15ull >> 56) ^
           static_cast<unsigned char>(salt * 77 + 1);
}

// Memory is used again and never freed, as in most programs.
std::multimap<size_t, std::unique_ptr<test_memory>> unused_;

std::unique_ptr<test_memory> take_memory(size_t size) {
    const auto found = unused_.find(size);
    std::unique_ptr<test_memory> taken;
    if (found != unused_.end()) {
        taken = std::move(found->second);
        unused_.erase(found);
    } else {
        taken = chosen.allocate(chosen.memory, size);
    }
    return taken;
}

// `bytes` in blocks with gaps of their own size; block 0: contiguous.
struct message {
    size_t bytes, block;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    std::unique_ptr<test_memory> send, receive;

    message(size_t bytes_, size_t block_) : bytes(bytes_), block(block_) {
        if (block == 0) {
            MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type);
        } else {
            MPI_Type_vector(static_cast<int>(bytes / block), static_cast<int>(block),
                            static_cast<int>(2 * block), MPI_BYTE, &type);
        }
        MPI_Type_commit(&type);
        send = take_memory(span());
        receive = take_memory(span());
        send->write(image(chosen.rank));
        receive->write(std::vector<unsigned char>(span(), 0xa5));
    }
    ~message() {
        MPI_Type_free(&type);
        unused_.emplace(span(), std::move(send));
        unused_.emplace(span(), std::move(receive));
    }
    message(const message &) = delete;
    message &operator=(const message &) = delete;

    size_t span() const { return block == 0 ? bytes : 2 * bytes; }
    std::vector<unsigned char> image(int salt) const {
        std::vector<unsigned char> made(span());
        for (size_t i = 0; i < made.size(); ++i) {
            made[i] = pattern(i, salt);
        }
        return made;
    }
    void check() const {
        std::vector<unsigned char> seen = receive->read(), sent = image(1 - chosen.rank);
        for (size_t i = 0; i < seen.size(); ++i) {
            bool covered = block == 0 || i / block % 2 == 0;
            wrong_ += seen[i] != (covered ? sent[i] : 0xa5);
        }
    }
};

double ping_pong(message &m) {
    double start = MPI_Wtime();
    for (int turn = 0; turn < 2; ++turn) {
        if (turn == chosen.rank) {
            MPI_Send(m.send->address(), 1, m.type, 1 - chosen.rank, 1, MPI_COMM_WORLD);
        } else {
            MPI_Recv(m.receive->address(), 1, m.type, 1 - chosen.rank, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        }
    }
    return (MPI_Wtime() - start) / 2;
}

double both_ways(std::vector<std::unique_ptr<message>> &all) {
    std::vector<MPI_Request> requests(2 * all.size());
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (size_t i = 0; i < all.size(); ++i) {
        MPI_Irecv(all[i]->receive->address(), 1, all[i]->type, 1 - chosen.rank, static_cast<int>(i),
                  MPI_COMM_WORLD, &requests[i]);
    }
    for (size_t i = 0; i < all.size(); ++i) {
        MPI_Isend(all[i]->send->address(), 1, all[i]->type, 1 - chosen.rank, static_cast<int>(i),
                  MPI_COMM_WORLD, &requests[all.size() + i]);
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    return MPI_Wtime() - start;
}

void line(const char *what, size_t bytes, size_t block, size_t messages, double us) {
    if (chosen.rank == 0) {
        std::printf("%s %-9s %9zu B block %5zu x %2zu: %9.1f us %7.1f GB/s each way\n",
                    chosen.label.c_str(), what, bytes, block, messages, us,
                    static_cast<double>(bytes * messages) / us / 1e3);
        std::fflush(stdout);
    }
}

// How it went in a process: the median of each `part` exchanges, in their order.
void show_course(const std::vector<double> &times) {
    constexpr size_t part = 64;
    if (chosen.rank != 0) {
        return;
    }
    std::printf("  medians of %zu after %zu:", part, part);
    for (size_t from = 0; from + part <= times.size(); from += part) {
        const auto first = times.begin() + static_cast<std::ptrdiff_t>(from);
        std::printf(" %.1f", cuda_nc::tools::median_of({first, first + part}) * 1e6);
    }
    std::printf("\n");
}

bool is_chosen(size_t block) {
    return chosen.block < 0 || block == static_cast<size_t>(chosen.block);
}

void run() {
    for (size_t bytes :
         {64u, 4u << 10, 64u << 10, 256u << 10, 1u << 20, 4u << 20, 16u << 20, 64u << 20}) {
        if (bytes < chosen.smallest || bytes > chosen.largest) {
            continue;
        }
        for (size_t block : {0, 8, 64, 4096}) {
            if ((block == 0 ? chosen.memory == "sim" : chosen.contiguous) || 2 * block > bytes) {
                continue;  // UCX cannot read it, or it is one block
            }
            if (!is_chosen(block)) {
                continue;
            }
            message m(bytes, block);
            std::vector<double> times;
            int repeats = bytes >= (16u << 20) ? chosen.repeats / 4 + 3 : chosen.repeats;
            const int first = chosen.course ? 0 : 10;
            for (int i = 0; i < repeats + first; ++i) {
                double time = ping_pong(m);
                if (i >= first) {
                    times.push_back(time);
                }
            }
            m.check();
            line("ping-pong", bytes, block, 1, cuda_nc::tools::median_of(times) * 1e6);
            if (chosen.course) {
                show_course(times);
            }
        }
    }
    struct {
        size_t bytes, messages;
    } windows[] = {{16u << 20, 1}, {64u << 20, 1}, {1u << 20, 64}, {64u << 10, 64}};
    for (auto &window : windows) {
        if (window.bytes < chosen.smallest || window.bytes > chosen.largest || chosen.course) {
            continue;
        }
        for (size_t block : {0, 64}) {
            if ((block == 0 ? chosen.memory == "sim" : chosen.contiguous) || !is_chosen(block)) {
                continue;
            }
            std::vector<std::unique_ptr<message>> all;
            for (size_t i = 0; i < window.messages; ++i) {
                all.push_back(std::make_unique<message>(window.bytes, block));
            }
            std::vector<double> times;
            for (int i = 0; i < chosen.repeats / 8 + 6; ++i) {
                double time = both_ways(all);
                if (i >= 3) {
                    times.push_back(time);
                }
            }
            for (auto &one : all) {
                one->check();
            }
            line("both-ways", window.bytes, block, window.messages,
                 cuda_nc::tools::median_of(times) * 1e6);
        }
    }
}

}  // namespace

int main(int argc, char **argv) {
    CLI::App app("Two ranks exchange vectors of several sizes: mpirun -np 2 mpi_sizes",
                 "mpi_sizes");
    chosen.add_options(&app);
    app.add_option("--repeats", chosen.repeats, "Exchanges of messages below 16 MiB")
        ->capture_default_str();
    app.add_option("--smallest", chosen.smallest, "Bytes of the smallest message")
        ->capture_default_str();
    app.add_option("--largest", chosen.largest, "Bytes of the largest message")
        ->capture_default_str();
    app.add_option("--block", chosen.block,
                   "Blocks of these bytes alone: 0 (contiguous), 8, 64, 4096");
    app.add_flag("--course", chosen.course,
                 "Also how the times of a row change in the process, from its first exchange on");
    app.add_flag("--contiguous", chosen.contiguous,
                 "Contiguous memory alone, for an MPI without us");
    CLI11_PARSE(app, argc, argv);
    chosen.start(&argc, &argv);
    run();
    unused_.clear();
    return chosen.finish(wrong_);
}
