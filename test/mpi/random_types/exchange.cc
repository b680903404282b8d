#include "random_types/exchange.hpp"

#include "random_types/call_arguments.hpp"

namespace mpi_test {
namespace {

MPI_Request start_send(arena &memory, const message &m, int tag) {
    call_arguments arguments(memory, m.from);
    MPI_Request request;
    switch (m.send_by) {
        case send_call::issend:
            MPI_Issend(arguments.address, arguments.count, arguments.type, 1 - m.sender, tag,
                       MPI_COMM_WORLD, &request);
            break;
        case send_call::persistent:
            MPI_Send_init(arguments.address, arguments.count, arguments.type, 1 - m.sender, tag,
                          MPI_COMM_WORLD, &request);
            MPI_Start(&request);
            break;
        default:
            MPI_Isend(arguments.address, arguments.count, arguments.type, 1 - m.sender, tag,
                      MPI_COMM_WORLD, &request);
            break;
    }
    return request;
}

MPI_Request start_receive(arena &memory, const message &m, int tag) {
    call_arguments arguments(memory, m.to);
    MPI_Request request;
    switch (m.receive_by) {
        case receive_call::persistent:
            MPI_Recv_init(arguments.address, arguments.count, arguments.type, m.sender, tag,
                          MPI_COMM_WORLD, &request);
            MPI_Start(&request);
            break;
        case receive_call::probe: {
            MPI_Message matched;
            MPI_Mprobe(m.sender, tag, MPI_COMM_WORLD, &matched, MPI_STATUS_IGNORE);
            MPI_Imrecv(arguments.address, arguments.count, arguments.type, &matched, &request);
            break;
        }
        default:
            MPI_Irecv(arguments.address, arguments.count, arguments.type, m.sender, tag,
                      MPI_COMM_WORLD, &request);
            break;
    }
    return request;
}

}  // namespace

void exchange(int rank, arena &memory, const std::vector<message> &messages, bool sends_first) {
    std::vector<MPI_Request> requests;
    std::vector<MPI_Request> persistent;
    for (int pass = 0; pass < 3; ++pass) {  // probes last, or two ranks would wait for each other
        for (size_t i = 0; i < messages.size(); ++i) {
            const message &m = messages[i];
            bool sends = m.sender == rank;
            int wanted = sends                                 ? (sends_first ? 0 : 1)
                         : m.receive_by == receive_call::probe ? 2
                                                               : (sends_first ? 1 : 0);
            if (wanted != pass) {
                continue;
            }
            int tag = static_cast<int>(i);
            requests.push_back(sends ? start_send(memory, m, tag) : start_receive(memory, m, tag));
            if (sends ? m.send_by == send_call::persistent
                      : m.receive_by == receive_call::persistent) {
                persistent.push_back(requests.back());
            }
        }
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (MPI_Request request : persistent) {
        MPI_Request_free(&request);
    }
}

}  // namespace mpi_test
