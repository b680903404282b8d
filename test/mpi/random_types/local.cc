#include "random_types/local.hpp"

#include <algorithm>

#include "random_types/call_arguments.hpp"

namespace mpi_test {
namespace {

constexpr int offset = 13;  // of the first packed byte: MPI's position

// `packs` elements of `side` to or from `packed`, in two calls where there are several.
void pack_in_parts(bool packs, const call_arguments &a, std::vector<char> *packed) {
    MPI_Aint lower_bound, extent;
    MPI_Type_get_extent(a.type, &lower_bound, &extent);
    auto room = static_cast<int>(packed->size());
    int position = offset, first = (a.count + 1) / 3;
    for (int part = 0; part < 2; ++part) {
        int count = part == 0 ? first : a.count - first;
        char *address = static_cast<char *>(a.address) + (part == 0 ? 0 : first * extent);
        if (packs) {
            MPI_Pack(address, count, a.type, packed->data(), room, &position, MPI_COMM_SELF);
        } else {
            MPI_Unpack(packed->data(), room, &position, address, count, a.type, MPI_COMM_SELF);
        }
    }
}

// False where packed bytes are wrong, or bytes around them are touched.
bool pack_and_unpack(arena &memory, const message &m, const std::vector<char> &content) {
    std::vector<char> expected = m.from.bytes().pack(content.data() + m.from.base);
    std::vector<char> packed(expected.size() + 2 * offset, '\x5a');
    pack_in_parts(true, call_arguments(memory, m.from), &packed);
    bool right = m.from.bytes().has_padding() ||
                 std::equal(expected.begin(), expected.end(), packed.begin() + offset);
    auto untouched = [](char byte) { return byte == '\x5a'; };
    right = right && std::all_of(packed.begin(), packed.begin() + offset, untouched) &&
            std::all_of(packed.end() - offset, packed.end(), untouched);
    pack_in_parts(false, call_arguments(memory, m.to), &packed);
    return right;
}

void buffered_send(int rank, arena &memory, const message &m) {
    constexpr int tag = 5;
    if (rank == m.sender) {
        call_arguments a(memory, m.from);
        int size = 0;
        MPI_Pack_size(a.count, a.type, MPI_COMM_WORLD, &size);
        std::vector<char> room(static_cast<size_t>(size) + MPI_BSEND_OVERHEAD);
        MPI_Buffer_attach(room.data(), static_cast<int>(room.size()));
        MPI_Bsend(a.address, a.count, a.type, 1 - rank, tag, MPI_COMM_WORLD);
        void *detached;
        MPI_Buffer_detach(&detached, &size);  // waits until the message is gone
    } else {
        call_arguments a(memory, m.to);
        MPI_Recv(a.address, a.count, a.type, m.sender, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

}  // namespace

local_call local_call_of(const message &m) {
    auto number = m.from.region / 64 + m.to.region / 64 + static_cast<size_t>(m.sender);
    return static_cast<local_call>(number % size_t(local_call::count));
}

std::vector<const message *> move_locally(int rank, arena &memory,
                                          const std::vector<message> &messages,
                                          const std::vector<char> &content) {
    std::vector<const message *> wrong;
    for (const message &m : messages) {
        call_arguments from(memory, m.from), to(memory, m.to);
        switch (local_call_of(m)) {
            case local_call::pack:
                if (!pack_and_unpack(memory, m, content)) {
                    wrong.push_back(&m);
                }
                break;
            case local_call::gather:
                MPI_Gather(from.address, from.count, from.type, to.address, to.count, to.type, 0,
                           MPI_COMM_SELF);
                break;
            case local_call::alltoall:
                MPI_Alltoall(from.address, from.count, from.type, to.address, to.count, to.type,
                             MPI_COMM_SELF);
                break;
            case local_call::bsend:
                buffered_send(rank, memory, m);
                break;
            default:
                MPI_Sendrecv_replace(to.address, to.count, to.type, 1 - rank, 6, 1 - rank, 6,
                                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                break;
        }
    }
    return wrong;
}

void expect_local(int rank, arena &memory, const message &m, const std::vector<char> *contents) {
    switch (local_call_of(m)) {
        case local_call::bsend:
            if (m.sender == rank) {
                return;
            }
            memory.expect(m.to, m.from.bytes().pack(contents[m.sender].data() + m.from.base));
            break;
        case local_call::replace:
            memory.expect(m.to, m.to.bytes().pack(contents[1 - rank].data() + m.to.base));
            break;
        default:
            memory.expect(m.to, m.from.bytes().pack(contents[rank].data() + m.from.base));
            break;
    }
    memory.forgive_padding(m.to);
}

}  // namespace mpi_test
