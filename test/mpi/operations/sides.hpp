// Messages with contiguous memory on one side and a datatype on the other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operations/exchange.hpp"

namespace mpi_test {

// One rank's part of such a message: the buffer, and how MPI is told of it.
struct side {
    typed_buffer buffer;
    int count;
    MPI_Datatype type;
};

// A message that is about to be made: rank `sender` sends it.
struct one_sided_message {
    int sender;
    bool plain_sends;  // the sender's memory is contiguous, else the receiver's
    int bytes;
    const sample *typed;
    const made_type *form;  // the contiguous side's datatype
    int tag;
    int counts;  // 1: both sides are on GPUs
    std::string text;

    bool is_plain(int rank) const { return (rank == sender) == plain_sends; }
    type_map map(int rank) const;
    int count(int rank) const;
    MPI_Datatype type(int rank) const {
        return is_plain(rank) ? form->handle() : typed->type.handle();
    }
    side make_side(harness &t, uint64_t key) const {
        return {{t.device(), map(t.rank()), key}, count(t.rank()), type(t.rank())};
    }
    // What arrives, if the sender's buffer has this key.
    std::vector<char> content(uint64_t key) const { return packed_content(map(sender), key); }
};

// Every shape and size, both directions, contiguous memory on either side, in turn as MPI_BYTE,
// MPI_PACKED, MPI_DOUBLE and a datatype of its own; where the memory allows it (UCX itself cannot
// touch that of a simulated GPU). Each message is counted as one that must go from GPU to GPU.
void for_each_side(harness &t, const std::function<void(const one_sided_message &)> &call);
// Some of them, for subtests that send each many times.
void for_few_sides(harness &t, const std::function<void(const one_sided_message &)> &call);

// The message is not to be counted: nothing of it goes from GPU to GPU. Or such a message is sent
// besides.
void do_not_count(harness &t, const one_sided_message &message);
void count_also(harness &t, const one_sided_message &message);

}  // namespace mpi_test
