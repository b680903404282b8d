#include "tools/perftest/mpi/mpi_messenger.hpp"

#include "tools/perftest/mpi/datatype.hpp"
#include "tools/perftest/mpi/mpi_exchange.hpp"

namespace cuda_nc::tools {

mpi_messenger::mpi_messenger() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

std::unique_ptr<message_type> mpi_messenger::make_type(const layout &what) {
    auto type = std::make_unique<mpi_type>(make_datatype(what), 1, true);
    check_mpi(MPI_Type_commit(&type->datatype), "MPI_Type_commit");
    return type;
}

std::unique_ptr<message_type> mpi_messenger::make_contiguous(size_t bytes) {
    return bytes % 8 == 0 ? std::make_unique<mpi_type>(MPI_DOUBLE, to_mpi_count(bytes / 8), false)
                          : std::make_unique<mpi_type>(MPI_BYTE, to_mpi_count(bytes), false);
}

void mpi_messenger::send(const void *address, const message_type &type, int peer, int tag) {
    check_mpi(MPI_Send(address, mpi(type).count, mpi(type).datatype, peer, tag, MPI_COMM_WORLD),
              "MPI_Send");
}

void mpi_messenger::receive(void *address, const message_type &type, int peer, int tag) {
    check_mpi(MPI_Recv(address, mpi(type).count, mpi(type).datatype, peer, tag, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE),
              "MPI_Recv");
}

void mpi_messenger::start_send(const void *address, const message_type &type, int peer, int tag) {
    started_.emplace_back();
    check_mpi(MPI_Isend(address, mpi(type).count, mpi(type).datatype, peer, tag, MPI_COMM_WORLD,
                        &started_.back()),
              "MPI_Isend");
}

void mpi_messenger::start_receive(void *address, const message_type &type, int peer, int tag) {
    started_.emplace_back();
    check_mpi(MPI_Irecv(address, mpi(type).count, mpi(type).datatype, peer, tag, MPI_COMM_WORLD,
                        &started_.back()),
              "MPI_Irecv");
}

void mpi_messenger::finish() {
    check_mpi(MPI_Waitall(static_cast<int>(started_.size()), started_.data(), MPI_STATUSES_IGNORE),
              "MPI_Waitall");
    started_.clear();
}

std::unique_ptr<message_exchange> mpi_messenger::make_exchange(
    const std::string &way, const void *from, void *to,
    const std::vector<exchanged_message> &messages) {
    return way == "isend" ? messenger::make_exchange(way, from, to, messages)
                          : make_mpi_exchange(way, from, to, messages);
}

std::vector<std::string> mpi_messenger::gather(const std::string &mine) {
    const int length = to_mpi_count(mine.size());
    std::vector<int> lengths(static_cast<size_t>(size_)), starts(lengths.size());
    check_mpi(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD),
              "MPI_Allgather");
    uint64_t total = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
        starts[i] = to_mpi_count(total);
        total += static_cast<uint64_t>(lengths[i]);
    }
    std::string all(total, '\0');
    check_mpi(MPI_Allgatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(),
                             starts.data(), MPI_CHAR, MPI_COMM_WORLD),
              "MPI_Allgatherv");
    std::vector<std::string> texts;
    for (size_t i = 0; i < lengths.size(); ++i) {
        texts.push_back(
            all.substr(static_cast<size_t>(starts[i]), static_cast<size_t>(lengths[i])));
    }
    return texts;
}

void mpi_messenger::barrier() {
    check_mpi(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

}  // namespace cuda_nc::tools
