// Shows that Open MPI 5.0.11 by itself delivers wrong bytes in ordinary host memory:
//
//     mpicxx stock_wrong_bytes.cc -o wrong
//     UCX_CUDA_NC_ENABLE=n mpirun -np 2 ./wrong      says WRONG
//     mpirun -np 2 ./wrong                           says RIGHT, with the plugin
//
// Rank 0 sends some elements of a datatype to rank 1, which receives bytes; and bytes to rank 1,
// which receives elements. Both pack and unpack them, and copy them to themselves by a collective.
// Exit status 1 where a byte was wrong. Needs MPI alone.
#define OMPI_SKIP_MPICXX 1  // the C bindings alone
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <vector>

namespace {

// Blocks of `length` bytes at `displacements`, repeated `count` times, `extent` apart.
struct example {
    const char *text;
    MPI_Datatype type;
    int count;
    std::vector<long> displacements;
    size_t length;
    long extent;
};

std::vector<example> examples() {
    std::vector<example> all;
    MPI_Datatype type;
    MPI_Type_create_hvector(3, 1, 24, MPI_C_DOUBLE_COMPLEX, &type);
    all.push_back(
        {"hvector(3 x 1, stride 24) of MPI_C_DOUBLE_COMPLEX", type, 1, {0, 24, 48}, 16, 0});
    MPI_Type_create_hvector(3, 1, 12, MPI_C_FLOAT_COMPLEX, &type);
    all.push_back({"hvector(3 x 1, stride 12) of MPI_C_FLOAT_COMPLEX", type, 1, {0, 12, 24}, 8, 0});
    MPI_Aint places[] = {168, 64};
    MPI_Type_create_hindexed_block(2, 1, places, MPI_C_DOUBLE_COMPLEX, &type);
    all.push_back({"3 x hindexed_block({168, 64}) of MPI_C_DOUBLE_COMPLEX",
                   type,
                   3,
                   {168, 64},
                   16,
                   168 + 16 - 64});
    MPI_Type_create_hvector(5, 1, -1, MPI_BYTE, &type);
    all.push_back({"hvector(5 x 1, stride -1) of MPI_BYTE", type, 1, {0, -1, -2, -3, -4}, 1, 0});
    int second = 1;
    MPI_Datatype of_second;
    MPI_Type_create_indexed_block(1, 1, &second, MPI_DOUBLE, &of_second);
    MPI_Type_create_resized(of_second, 0, 8, &type);
    all.push_back({"3 x the second MPI_DOUBLE of two, resized to one", type, 3, {8}, 8, 8});
    MPI_Type_commit(&of_second);  // then the resized type is committed from its birth
    MPI_Type_create_resized(of_second, 0, 8, &type);
    MPI_Type_free(&of_second);
    all.push_back({"3 x the same, resized when it was committed", type, 3, {8}, 8, 8});
    return all;
}

constexpr size_t buffer_bytes = 4096, origin = 1024;

// Copies between the elements in `buffer` and the packed bytes.
void move(const example &e, bool packs, char *buffer, char *packed) {
    for (int i = 0; i < e.count; ++i) {
        for (long displacement : e.displacements) {
            char *block = buffer + origin + i * e.extent + displacement;
            std::memcpy(packs ? packed : block, packs ? block : packed, e.length);
            packed += e.length;
        }
    }
}

// What an example's buffers hold before and after.
struct content {
    std::vector<char> sent, received, expected, packed, got;

    explicit content(const example &e)
        : sent(buffer_bytes),
          received(buffer_bytes),
          expected(buffer_bytes),
          packed(static_cast<size_t>(e.count) * e.displacements.size() * e.length),
          got(packed.size()) {
        for (size_t i = 0; i < buffer_bytes; ++i) {
            sent[i] = static_cast<char>(i * 7 + i / 251);
        }
        move(e, true, sent.data(), packed.data());
        move(e, false, expected.data(), packed.data());
    }
    int size() const { return static_cast<int>(packed.size()); }
};

bool delivers(const example &e, int rank) {
    content c(e);
    if (rank == 0) {
        MPI_Send(c.sent.data() + origin, e.count, e.type, 1, 1, MPI_COMM_WORLD);
        MPI_Send(c.packed.data(), c.size(), MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        return true;
    }
    MPI_Recv(c.got.data(), c.size(), MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(c.received.data() + origin, e.count, e.type, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return c.got == c.packed && c.received == c.expected;
}

bool packs(const example &e) {
    content c(e);
    int position = 0;
    MPI_Pack(c.sent.data() + origin, e.count, e.type, c.got.data(), c.size(), &position,
             MPI_COMM_SELF);
    position = 0;
    MPI_Unpack(c.packed.data(), c.size(), &position, c.received.data() + origin, e.count, e.type,
               MPI_COMM_SELF);
    return c.got == c.packed && c.received == c.expected;
}

bool copies(const example &e) {
    content c(e);
    MPI_Allgather(c.sent.data() + origin, e.count, e.type, c.received.data() + origin, e.count,
                  e.type, MPI_COMM_SELF);
    return c.received == c.expected;
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int wrong = 0;
    for (example &e : examples()) {
        MPI_Type_commit(&e.type);
        const struct {
            const char *text;
            bool right;
        } done[] = {{"sent", delivers(e, rank)}, {"packed", packs(e)}, {"copied", copies(e)}};
        for (const auto &one : done) {
            wrong += one.right ? 0 : 1;
            if (rank == 1) {
                std::printf("%s %s: %s\n", one.right ? "RIGHT" : "WRONG", one.text, e.text);
            }
        }
        MPI_Type_free(&e.type);
    }
    std::fflush(stdout);  // when another rank exits with 1, the launcher kills this one
    MPI_Finalize();
    return wrong != 0;
}
