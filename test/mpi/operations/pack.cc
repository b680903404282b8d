// MPI_Pack and its family.
#include <algorithm>
#include <vector>

#include "operations/exchange.hpp"

namespace mpi_test {
namespace {

// All samples in one packed buffer, one behind the other, and out of it again.
void pack_unpack(harness &t) {
    std::vector<char> packed(64 << 20), expected;
    int position = 0;
    auto room = static_cast<int>(packed.size());
    uint64_t number = 0;
    for (const sample &s : samples()) {
        typed_buffer from(t.device(), s.type, s.count, key_of(t.rank(), ++number));
        MPI_Pack(from.address(), s.count, s.type.handle(), packed.data(), room, &position,
                 MPI_COMM_WORLD);
        std::vector<char> part = from.packed();
        expected.insert(expected.end(), part.begin(), part.end());
        t.expect(position == static_cast<int>(expected.size()), "position after packing");
        t.expect(from.right(), "packed from " + s.type.text());
    }
    t.expect(std::equal(expected.begin(), expected.end(), packed.begin()), "packed bytes");
    position = 0;
    number = 0;
    for (const sample &s : samples()) {
        typed_buffer to(t.device(), s.type, s.count, 7);
        MPI_Unpack(packed.data(), room, &position, to.address(), s.count, s.type.handle(),
                   MPI_COMM_WORLD);
        to.expect(packed_content(to.map(), key_of(t.rank(), ++number)));
        t.expect(to.right(), "unpacked to " + s.type.text());
    }
    t.expect(position == static_cast<int>(expected.size()), "position after unpacking");
}

// What one rank packs, the other receives by the type; and what it sends by the type, the other
// receives packed and unpacks.
void packed_messages(harness &t) {
    for (const sample &s : samples()) {
        typed_buffer buffer(t.device(), s.type, s.count, key_of(t.rank(), 1));
        std::vector<char> packed(static_cast<size_t>(buffer.size()) + 1);
        auto size = static_cast<int>(buffer.size());
        int position = 0;
        if (t.rank() == 0) {
            MPI_Pack(buffer.address(), s.count, s.type.handle(), packed.data(), size, &position,
                     MPI_COMM_WORLD);
            MPI_Send(packed.data(), size, MPI_PACKED, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(packed.data(), size, MPI_PACKED, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            position = 0;
            MPI_Unpack(packed.data(), size, &position, buffer.address(), s.count, s.type.handle(),
                       MPI_COMM_WORLD);
            buffer.expect(packed_content(buffer.map(), 77));
        } else {
            plain_receive(buffer.address(), s.count, s.type.handle(), 0, 1);
            buffer.expect(packed_content(buffer.map(), key_of(0, 1)));
            t.expect(buffer.right(), "received of " + s.type.text());
            buffer.refill(77);
            plain_send(buffer.address(), s.count, s.type.handle(), 0, 2);
        }
        t.expect(buffer.right(), s.type.text());
    }
}

// Big-endian 4-byte and 2-byte values, and single bytes as they are.
void pack_external(harness &t) {
    struct {
        const char *name;
        size_t width;
    } const basics[] = {{"BYTE", 1}, {"SHORT", 2}, {"INT", 4}, {"DOUBLE", 8}};
    for (const auto &b : basics) {
        made_type type = hvector(100, 3, 5 * static_cast<int64_t>(b.width), basic(b.name));
        type.commit();
        typed_buffer from(t.host(), type, 2, 5), to(t.host(), type, 2, 7);
        std::vector<char> expected = from.packed(), packed(expected.size());
        for (size_t i = 0; i < expected.size(); i += b.width) {
            std::reverse(expected.begin() + static_cast<ptrdiff_t>(i),
                         expected.begin() + static_cast<ptrdiff_t>(i + b.width));
        }
        MPI_Aint position = 0, size = 0;
        MPI_Pack_external_size("external32", 2, type.handle(), &size);
        t.expect(size == static_cast<MPI_Aint>(packed.size()), "size in external32");
        MPI_Pack_external("external32", from.address(), 2, type.handle(), packed.data(), size,
                          &position);
        t.expect(packed == expected && from.right(), std::string("packed ") + b.name);
        position = 0;
        MPI_Unpack_external("external32", packed.data(), size, &position, to.address(), 2,
                            type.handle());
        to.expect(from.packed());
        t.expect(to.right(), std::string("unpacked ") + b.name);
    }
}

// No element, into and out of a packed buffer that is full, in host and in GPU memory.
void pack_nothing(harness &t) {
    const made_type &type = samples().front().type;
    for (memory *where : {&t.host(), &t.device()}) {
        for (memory *of : {&t.host(), &t.device()}) {
            typed_buffer elements(*of, type, 1, 5);
            typed_buffer packed(*where, contiguous(16, basic("BYTE")), 1, 7);
            int position = 16;
            int packs = MPI_Pack(elements.address(), 0, type.handle(), packed.address(), 16,
                                 &position, MPI_COMM_WORLD);
            int unpacks = MPI_Unpack(packed.address(), 16, &position, elements.address(), 0,
                                     type.handle(), MPI_COMM_WORLD);
            t.expect(packs == MPI_SUCCESS && unpacks == MPI_SUCCESS, "no element is no error");
            t.expect(position == 16 && packed.right() && elements.right(), "nothing moved");
        }
    }
}

const registration tests[] = {
    {"pack_nothing", pack_nothing},
    {"pack_unpack", pack_unpack},
    {"packed_messages", packed_messages},
    // the CPU alone changes the byte order
    {"pack_external", pack_external, subtest::kind::pair, subtest::where::host},
};

}  // namespace
}  // namespace mpi_test
