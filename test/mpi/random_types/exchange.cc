#include "random_types/exchange.hpp"

namespace mpi_test {
namespace {

struct call_arguments {
    void *address;
    int count;
    MPI_Datatype type;
    bool made = false;  // the type is this call's own

    call_arguments(arena &memory, const side &s)
        : address(memory.address(s)), count(s.count), type(s.type.handle()) {
        if (s.bottom) {
            MPI_Aint absolute;
            MPI_Get_address(address, &absolute);
            MPI_Type_create_hindexed(1, &count, &absolute, type, &type);
            MPI_Type_commit(&type);
            address = MPI_BOTTOM;
            count = 1;
            made = true;
        }
    }
    // the message in flight keeps the type
    ~call_arguments() {
        if (made) {
            MPI_Type_free(&type);
        }
    }
    call_arguments(const call_arguments &) = delete;
    call_arguments &operator=(const call_arguments &) = delete;
};

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
