// Shows that Open MPI 5.0.11 by itself delivers wrong bytes in ordinary host memory:
//
//     mpicxx stock_wrong_bytes.cc -o wrong
//     UCX_CUDA_NC_ENABLE=n mpirun -np 2 ./wrong      says WRONG
//     mpirun -np 2 ./wrong                           says RIGHT, with the plugin
//
// Rank 0 sends some elements of a datatype to rank 1, which receives bytes; and bytes to rank 1,
// which receives elements. Exit status 1 where a byte was wrong. Needs MPI alone.
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

bool delivers(example &e, int rank) {
    MPI_Type_commit(&e.type);
    std::vector<char> sent(buffer_bytes), received(buffer_bytes), expected(buffer_bytes);
    for (size_t i = 0; i < buffer_bytes; ++i) {
        sent[i] = static_cast<char>(i * 7 + i / 251);
    }
    size_t size = static_cast<size_t>(e.count) * e.displacements.size() * e.length;
    std::vector<char> packed(size), got(size);
    move(e, true, sent.data(), packed.data());
    move(e, false, expected.data(), packed.data());
    auto bytes = static_cast<int>(size);
    if (rank == 0) {
        MPI_Send(sent.data() + origin, e.count, e.type, 1, 1, MPI_COMM_WORLD);
        MPI_Send(packed.data(), bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
    } else {
        MPI_Recv(got.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(received.data() + origin, e.count, e.type, 0, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&e.type);
    return rank == 0 || (got == packed && received == expected);
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int wrong = 0;
    for (example &e : examples()) {
        bool right = delivers(e, rank);
        wrong += right ? 0 : 1;
        if (rank == 1) {
            std::printf("%s %s\n", right ? "RIGHT" : "WRONG", e.text);
        }
    }
    MPI_Finalize();
    return wrong != 0;
}
