#include "tools/perftest/mpi/mpi_messenger.hpp"

#include <climits>

#include <fmt/core.h>

#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {
namespace {

void check(int status, const char *what) {
    if (status != MPI_SUCCESS) {
        throw run_error(fmt::format("{} failed: MPI error {}", what, status));
    }
}

int to_int(uint64_t value) {
    if (value > INT_MAX) {
        throw run_error("MPI counts no more than 2^31 - 1 elements");
    }
    return static_cast<int>(value);
}

class mpi_type final : public message_type {
  public:
    mpi_type(MPI_Datatype type, int elements) : datatype(type), count(elements) {}
    ~mpi_type() override {
        if (owned) {
            MPI_Type_free(&datatype);
        }
    }
    mpi_type(const mpi_type &) = delete;
    mpi_type &operator=(const mpi_type &) = delete;

    // Puts a type made of this one in its place.
    void become(MPI_Datatype made) {
        if (owned) {
            MPI_Type_free(&datatype);
        }
        datatype = made;
        owned = true;
    }

    MPI_Datatype datatype;
    int count;
    bool owned = false;
};

const mpi_type &mpi(const message_type &type) {
    return static_cast<const mpi_type &>(type);
}

struct element {
    MPI_Datatype type;
    uint64_t size;
};

// The largest that every block is made of, as in a program that sends numbers.
element element_of(const layout_view &view) {
    return view.align_log2 >= 3   ? element{MPI_DOUBLE, 8}
           : view.align_log2 == 2 ? element{MPI_FLOAT, 4}
                                  : element{MPI_BYTE, 1};
}

// One pass over the layout's list of blocks.
void become_list(mpi_type *type, const layout &what) {
    const element unit = element_of(what.view());
    std::vector<int> lengths;
    std::vector<MPI_Aint> displacements;
    layout_cursor cursor(what, 0);
    for (uint64_t left = what.view().list_size; left > 0;) {
        const block one = cursor.next(left);
        lengths.push_back(to_int(one.length / unit.size));
        displacements.push_back(static_cast<MPI_Aint>(one.displacement));
        left -= one.length;
    }
    MPI_Datatype made;
    if (lengths.size() == 1 && displacements[0] == 0) {
        check(MPI_Type_contiguous(lengths[0], unit.type, &made), "MPI_Type_contiguous");
    } else {
        check(MPI_Type_create_hindexed(to_int(lengths.size()), lengths.data(), displacements.data(),
                                       unit.type, &made),
              "MPI_Type_create_hindexed");
    }
    type->become(made);
}

}  // namespace

mpi_messenger::mpi_messenger() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

std::unique_ptr<message_type> mpi_messenger::make_type(const layout &what) {
    auto type = std::make_unique<mpi_type>(MPI_BYTE, 1);
    become_list(type.get(), what);
    for (unsigned d = 0; d < what.view().num_dims; ++d) {
        const layout_dim &dim = what.view().dims[d];
        MPI_Datatype made;
        check(MPI_Type_create_hvector(to_int(dim.count), 1, static_cast<MPI_Aint>(dim.stride),
                                      type->datatype, &made),
              "MPI_Type_create_hvector");
        type->become(made);
    }
    check(MPI_Type_commit(&type->datatype), "MPI_Type_commit");
    return type;
}

std::unique_ptr<message_type> mpi_messenger::make_contiguous(size_t bytes) {
    return bytes % 8 == 0 ? std::make_unique<mpi_type>(MPI_DOUBLE, to_int(bytes / 8))
                          : std::make_unique<mpi_type>(MPI_BYTE, to_int(bytes));
}

void mpi_messenger::send(const void *address, const message_type &type, int peer, int tag) {
    check(MPI_Send(address, mpi(type).count, mpi(type).datatype, peer, tag, MPI_COMM_WORLD),
          "MPI_Send");
}

void mpi_messenger::receive(void *address, const message_type &type, int peer, int tag) {
    check(MPI_Recv(address, mpi(type).count, mpi(type).datatype, peer, tag, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE),
          "MPI_Recv");
}

void mpi_messenger::start_send(const void *address, const message_type &type, int peer, int tag) {
    started_.emplace_back();
    check(MPI_Isend(address, mpi(type).count, mpi(type).datatype, peer, tag, MPI_COMM_WORLD,
                    &started_.back()),
          "MPI_Isend");
}

void mpi_messenger::start_receive(void *address, const message_type &type, int peer, int tag) {
    started_.emplace_back();
    check(MPI_Irecv(address, mpi(type).count, mpi(type).datatype, peer, tag, MPI_COMM_WORLD,
                    &started_.back()),
          "MPI_Irecv");
}

void mpi_messenger::finish() {
    check(MPI_Waitall(static_cast<int>(started_.size()), started_.data(), MPI_STATUSES_IGNORE),
          "MPI_Waitall");
    started_.clear();
}

std::vector<std::string> mpi_messenger::gather(const std::string &mine) {
    const int length = to_int(mine.size());
    std::vector<int> lengths(static_cast<size_t>(size_)), starts(lengths.size());
    check(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD),
          "MPI_Allgather");
    uint64_t total = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
        starts[i] = to_int(total);
        total += static_cast<uint64_t>(lengths[i]);
    }
    std::string all(total, '\0');
    check(MPI_Allgatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), starts.data(),
                         MPI_CHAR, MPI_COMM_WORLD),
          "MPI_Allgatherv");
    std::vector<std::string> texts;
    for (size_t i = 0; i < lengths.size(); ++i) {
        texts.push_back(
            all.substr(static_cast<size_t>(starts[i]), static_cast<size_t>(lengths[i])));
    }
    return texts;
}

void mpi_messenger::barrier() {
    check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

}  // namespace cuda_nc::tools
