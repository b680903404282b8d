// Many messages in flight, completed in each of MPI's ways.
#include <memory>
#include <vector>

#include "operations/message_batch.hpp"

namespace mpi_test {
namespace {

constexpr int many = 64;

// The odd rank posts its receives first, the other its sends: expected and unexpected messages.
std::vector<MPI_Request> start(harness &t, const message_batch &batch,
                               message_batch::start_send call) {
    std::vector<MPI_Request> requests;
    for (int pass = 0; pass < 2; ++pass) {
        for (int i = 0; i < batch.size(); ++i) {
            requests.push_back(pass == t.rank() ? batch.receive(i) : batch.send(i, call));
        }
    }
    return requests;
}

void isend_waitall(harness &t) {
    message_batch batch(t, many, 1);
    std::vector<MPI_Request> requests = start(t, batch, MPI_Isend);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    batch.check(t, "waitall");
}

void isend_waitany(harness &t) {
    message_batch batch(t, many, 1001);
    std::vector<MPI_Request> requests = start(t, batch, MPI_Isend);
    for (int index = 0; index != MPI_UNDEFINED;) {
        MPI_Waitany(static_cast<int>(requests.size()), requests.data(), &index, MPI_STATUS_IGNORE);
    }
    batch.check(t, "waitany");
}

void isend_testsome(harness &t) {
    message_batch batch(t, many, 2001);
    std::vector<MPI_Request> requests = start(t, batch, MPI_Isend);
    std::vector<int> indices(requests.size());
    for (int done = 0; done != MPI_UNDEFINED;) {
        MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &done, indices.data(),
                     MPI_STATUSES_IGNORE);
    }
    batch.check(t, "testsome");
}

void issend_waitall(harness &t) {
    message_batch batch(t, many, 3001);
    std::vector<MPI_Request> requests = start(t, batch, MPI_Issend);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    batch.check(t, "issend");
}

// Messages of one tag arrive in the order in which they were sent, whatever their sizes.
void one_tag_keeps_order(harness &t) {
    std::vector<std::unique_ptr<typed_buffer>> out, in;
    std::vector<MPI_Request> requests;
    size_t number = samples().size() - 2;
    for (size_t i = 0; i < number; ++i) {
        const sample &s = samples()[i * 7 % number];
        out.push_back(
            std::make_unique<typed_buffer>(t.device(), s.type, s.count, key_of(t.rank(), i)));
        in.push_back(std::make_unique<typed_buffer>(t.device(), s.type, s.count, 7));
        requests.emplace_back();
        MPI_Isend(out[i]->address(), s.count, s.type.handle(), t.peer(), 5, MPI_COMM_WORLD,
                  &requests.back());
        requests.emplace_back();
        MPI_Irecv(in[i]->address(), s.count, s.type.handle(), t.peer(), 5, MPI_COMM_WORLD,
                  &requests.back());
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (size_t i = 0; i < number; ++i) {
        in[i]->expect(packed_content(in[i]->map(), key_of(t.peer(), i)));
        t.expect(in[i]->right(), "message " + std::to_string(i));
    }
}

// MPI_Type_free right after the calls, with types of the same addresses made anew meanwhile.
void types_freed_in_flight(harness &t) {
    std::vector<std::unique_ptr<typed_buffer>> out, in;
    std::vector<MPI_Request> requests;
    for (int i = 0; i < 48; ++i) {
        made_type type = sample_type(i % num_shapes, i % 3 == 0 ? 200000 : 100 * (i + 1));
        auto number = static_cast<uint64_t>(i);
        out.push_back(
            std::make_unique<typed_buffer>(t.device(), type, 1, key_of(t.rank(), number)));
        in.push_back(std::make_unique<typed_buffer>(t.device(), type, 1, 7));
        requests.resize(requests.size() + 2);
        MPI_Isend(out.back()->address(), 1, type.handle(), t.peer(), i, MPI_COMM_WORLD,
                  &requests[requests.size() - 2]);
        MPI_Irecv(in.back()->address(), 1, type.handle(), t.peer(), i, MPI_COMM_WORLD,
                  &requests.back());
        type.release();
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (size_t i = 0; i < in.size(); ++i) {
        in[i]->expect(packed_content(in[i]->map(), key_of(t.peer(), i)));
        t.expect(in[i]->right() && out[i]->right(), "message " + std::to_string(i));
    }
}

const registration tests[] = {{"isend_waitall", isend_waitall},
                              {"isend_waitany", isend_waitany},
                              {"isend_testsome", isend_testsome},
                              {"issend_waitall", issend_waitall},
                              {"one_tag_keeps_order", one_tag_keeps_order},
                              {"types_freed_in_flight", types_freed_in_flight}};

}  // namespace
}  // namespace mpi_test
