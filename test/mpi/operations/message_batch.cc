#include "operations/message_batch.hpp"

#include <string>

#include "support/random.hpp"

namespace mpi_test {

message_batch::message_batch(harness &t, int count, int first_tag)
    : peer_(t.peer()), first_tag_(first_tag) {
    for (int i = 0; i < count; ++i) {
        const sample &s = sample_of(i);
        out_.push_back(std::make_unique<typed_buffer>(
            t.device(), s.type, s.count, key_of(t.rank(), static_cast<uint64_t>(first_tag + i))));
        in_.push_back(std::make_unique<typed_buffer>(t.device(), s.type, s.count, 7));
    }
}

const sample &message_batch::sample_of(int i) const {
    random_stream random{static_cast<uint64_t>(first_tag_ + i)};
    // without the last two: the largest would take most of the time
    return samples()[random.next() % (samples().size() - 2)];
}

MPI_Request message_batch::send(int i, start_send call) const {
    const sample &s = sample_of(i);
    MPI_Request request;
    call(out_[static_cast<size_t>(i)]->address(), s.count, s.type.handle(), peer_, first_tag_ + i,
         MPI_COMM_WORLD, &request);
    return request;
}

MPI_Request message_batch::receive(int i) const {
    const sample &s = sample_of(i);
    MPI_Request request;
    MPI_Irecv(in_[static_cast<size_t>(i)]->address(), s.count, s.type.handle(), peer_,
              first_tag_ + i, MPI_COMM_WORLD, &request);
    return request;
}

void message_batch::check(harness &t, const char *what) {
    for (int i = 0; i < size(); ++i) {
        typed_buffer &in = *in_[static_cast<size_t>(i)];
        auto number = static_cast<uint64_t>(first_tag_ + i);
        in.expect(packed_content(in.map(), key_of(peer_, number)));
        std::string text =
            std::string(what) + " " + std::to_string(i) + " of " + sample_of(i).type.text();
        t.expect(in.right(), "received by " + text);
        t.expect(out_[static_cast<size_t>(i)]->right(), "sent by " + text);
    }
}

}  // namespace mpi_test
