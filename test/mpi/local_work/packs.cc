// MPI_Pack and MPI_Unpack, with packed bytes on either side of the bus, and in external form.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "local_work/round.hpp"

namespace mpi_test {
namespace {

constexpr int behind = 9;  // bytes around the packed ones that nothing may touch

std::vector<char> fetch(memory &from, const void *start, size_t length) {
    std::vector<char> bytes(length);
    from.copy(bytes.data(), start, length);
    return bytes;
}

void pack_and_unpack(round &r) {
    const int count = static_cast<int>(r.mine.between(0, 5));
    const made_type &type = r.either();
    auto from = r.buffer(type, count, 3), to = r.buffer(type, count, 4);
    memory &where = r.place(r.other());
    const auto size = static_cast<size_t>(from->size());
    std::vector<char> expected(size + 2 * behind, 'x');
    char *packed = static_cast<char *>(where.allocate(expected.size()));
    where.copy(packed, expected.data(), expected.size());
    position place(behind);
    const auto room = static_cast<int>(size) + behind;
    r.text = "Pack";
    CALL_NOW(r, Pack, from->address(), count, type.handle(), packed, room, place, r.comm);
    std::vector<char> bytes = from->packed();
    std::copy(bytes.begin(), bytes.end(), expected.begin() + behind);
    r.expect(place.now() == room, "position after packing");
    r.expect(fetch(where, packed, expected.size()) == expected && from->right(), "packed bytes");
    place = position(behind);
    r.text = "Unpack";
    CALL_NOW(r, Unpack, packed, room, place, to->address(), count, type.handle(), r.comm);
    to->expect(bytes);
    r.expect(place.now() == room, "position after unpacking");
    r.expect(to->right(), "unpacked bytes");
    where.release(packed);
}

// Elements of one width, so that the order of bytes is known.
void external(round &r) {
    constexpr size_t width = 4;
    const int count = static_cast<int>(r.mine.between(1, 4));
    made_type type = hvector(static_cast<int>(r.mine.between(1, 50)), 2, 12, basic("INT"));
    type.commit();
    auto from = r.buffer(type, count, 3), to = r.buffer(type, count, 4);
    memory &where = r.place(type);
    std::vector<char> expected = from->packed();
    for (size_t i = 0; i < expected.size(); i += width) {
        std::reverse(expected.begin() + static_cast<ptrdiff_t>(i),
                     expected.begin() + static_cast<ptrdiff_t>(i + width));
    }
    const auto size = static_cast<MPI_Aint>(expected.size());
    char *packed = static_cast<char *>(where.allocate(expected.size() + behind));
    position place(behind);
    r.text = "Pack_external";
    CALL_NOW(r, Pack_external, "external32", from->address(), count, type.handle(), packed,
             size + behind, place);
    r.expect(place.now() == size + behind, "position after packing");
    r.expect(fetch(where, packed + behind, expected.size()) == expected, "bytes in external form");
    place = position(behind);
    r.text = "Unpack_external";
    CALL_NOW(r, Unpack_external, "external32", packed, size + behind, place, to->address(), count,
             type.handle());
    r.expect(place.now() == size + behind, "position after unpacking");
    to->expect(from->packed());
    r.expect(to->right() && from->right(), "bytes from external form");
    where.release(packed);
}

// What lies behind the elements in the buffer is not looked at.
void external_in_part(round &r) {
    made_type type = vector(40, 1, 2, basic("INT"));
    type.commit();
    typed_buffer from(r.t.device(), type, 2, 3), to(r.t.device(), type, 2, 4);
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void *mapped =
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto *packed = static_cast<char *>(mapped);
    mprotect(packed + page, page, PROT_NONE);
    const auto end = static_cast<MPI_Aint>(page), room = 2 * end;
    MPI_Aint place = end - from.size();
    r.text = "Pack_external in part";
    MPI_Pack_external("external32", from.address(), 2, type.handle(), packed, room, &place);
    r.expect(place == end && from.right(), "position after packing");
    place = end - from.size();
    r.text = "Unpack_external in part";
    MPI_Unpack_external("external32", packed, room, &place, to.address(), 2, type.handle());
    to.expect(from.packed());
    r.expect(place == end, "position after unpacking");
    r.expect(to.right(), "bytes");
    munmap(mapped, 2 * page);
}

// What has no room is refused, and nothing is written.
void too_long(round &r) {
    made_type type = vector(40, 1, 2, basic("INT"));
    type.commit();
    typed_buffer buffer(r.t.device(), type, 2, 3);
    std::vector<char> packed(static_cast<size_t>(buffer.size()), 'x'), before = packed;
    int place = 1, kind = MPI_SUCCESS;
    MPI_Aint far_place = 1;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    auto is_refused = [&](int error) {
        MPI_Error_class(error, &kind);
        r.expect(kind == MPI_ERR_TRUNCATE && place == 1, "refused");
    };
    const auto room = static_cast<int>(buffer.size());
    r.text = "Pack without room";
    is_refused(MPI_Pack(buffer.address(), 2, type.handle(), packed.data(), room, &place, comm));
    r.text = "Unpack without room";
    is_refused(MPI_Unpack(packed.data(), room, &place, buffer.address(), 2, type.handle(), comm));
    if (!is_open_mpi) {              // which packs this form with the CPU
        const errors_return during;  // of no communicator
        r.text = "Pack_external without room";
        is_refused(MPI_Pack_external("external32", buffer.address(), 2, type.handle(),
                                     packed.data(), room, &far_place));
        r.text = "Unpack_external without room";
        is_refused(MPI_Unpack_external("external32", packed.data(), room, &far_place,
                                       buffer.address(), 2, type.handle()));
    }
    r.expect(far_place == 1, "position");
    r.expect(packed == before && buffer.right(), "untouched");
    MPI_Comm_free(&comm);
}

}  // namespace

void random_pack(round &r) {
    if (r.t.device().is_device() && r.one_in(10)) {
        too_long(r);  // MPICH itself does not look at the room
    } else if (r.t.device().is_device() && !is_open_mpi && r.one_in(10)) {
        external_in_part(r);
    } else if (r.one_in(4)) {
        r.only_host = is_open_mpi;  // it packs this form with the CPU, which is not served
        external(r);
    } else {
        pack_and_unpack(r);
    }
}

}  // namespace mpi_test
