// Contiguous memory on one side: each call that sends or receives.
#include <memory>
#include <string>
#include <vector>

#include "operations/sides.hpp"

namespace mpi_test {
namespace {

constexpr auto sides = subtest::kind::sides;

using send = void (*)(harness &, const side &, int peer, int tag);
using receive = void (*)(harness &, const side &, int bytes, int peer, int tag);

void sent(harness &, const side &s, int peer, int tag) {
    MPI_Send(s.buffer.address(), s.count, s.type, peer, tag, MPI_COMM_WORLD);
}

void received(harness &, const side &s, int, int peer, int tag) {
    MPI_Recv(s.buffer.address(), s.count, s.type, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Whether the status is of so many bytes.
bool tells(MPI_Status &status, int bytes) {
    int told = -1;
    MPI_Get_count(&status, MPI_BYTE, &told);
    return told == bytes;
}

// Each message alone, by these calls.
void exchange(harness &t, send give, receive take) {
    for_each_side(t, [&](const one_sided_message &m) {
        const uint64_t key = key_of(m.sender, static_cast<uint64_t>(m.tag));
        side mine = m.make_side(t, t.rank() == m.sender ? key : 7);
        if (t.rank() == m.sender) {
            give(t, mine, t.peer(), m.tag);
        } else {
            take(t, mine, m.bytes, t.peer(), m.tag);
            mine.buffer.expect(m.content(key));
        }
        t.expect(mine.buffer.right(), m.text);
    });
}

void sides_send(harness &t) {
    exchange(t, sent, received);
}

void sides_ssend(harness &t) {
    exchange(
        t,
        [](harness &, const side &s, int peer, int tag) {
            MPI_Ssend(s.buffer.address(), s.count, s.type, peer, tag, MPI_COMM_WORLD);
        },
        received);
}

void sides_expected(harness &t) {
    exchange(
        t,
        [](harness &h, const side &s, int peer, int tag) {
            MPI_Barrier(MPI_COMM_WORLD);
            sent(h, s, peer, tag);
        },
        [](harness &, const side &s, int, int peer, int tag) {
            MPI_Request request;
            MPI_Irecv(s.buffer.address(), s.count, s.type, peer, tag, MPI_COMM_WORLD, &request);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        });
}

void sides_unexpected(harness &t) {
    exchange(
        t,
        [](harness &, const side &s, int peer, int tag) {
            MPI_Request request;
            MPI_Isend(s.buffer.address(), s.count, s.type, peer, tag, MPI_COMM_WORLD, &request);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        },
        [](harness &h, const side &s, int bytes, int peer, int tag) {
            MPI_Barrier(MPI_COMM_WORLD);
            received(h, s, bytes, peer, tag);
        });
}

void sides_any(harness &t) {
    exchange(t, sent, [](harness &h, const side &s, int bytes, int peer, int tag) {
        MPI_Status status;
        MPI_Recv(s.buffer.address(), s.count, s.type, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 &status);
        h.expect(status.MPI_SOURCE == peer && status.MPI_TAG == tag && tells(status, bytes),
                 "status of a receive from anybody");
    });
}

void sides_mprobe(harness &t) {
    exchange(t, sent, [](harness &h, const side &s, int bytes, int peer, int tag) {
        MPI_Message message;
        MPI_Status status;
        MPI_Mprobe(peer, tag, MPI_COMM_WORLD, &message, &status);
        h.expect(tells(status, bytes), "MPI_Mprobe");
        MPI_Mrecv(s.buffer.address(), s.count, s.type, &message, &status);
        h.expect(tells(status, bytes), "MPI_Mrecv");
    });
}

void sides_improbe(harness &t) {
    exchange(t, sent, [](harness &h, const side &s, int bytes, int, int) {
        MPI_Message message;
        MPI_Status status;
        for (int found = 0; found == 0;) {
            MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &message, &status);
        }
        h.expect(tells(status, bytes), "MPI_Improbe");
        MPI_Request request;
        MPI_Imrecv(s.buffer.address(), s.count, s.type, &message, &request);
        MPI_Wait(&request, &status);
        h.expect(tells(status, bytes), "MPI_Imrecv");
    });
}

// To the peer and from it at once: what the one sends contiguous the other receives as a datatype.
void sides_sendrecv(harness &t) {
    for_each_side(t, [&](const one_sided_message &there) {
        one_sided_message back = there;
        back.sender = 1 - there.sender;
        back.plain_sends = !there.plain_sends;  // the same rank's memory is contiguous
        const one_sided_message &out = t.rank() == there.sender ? there : back;
        const one_sided_message &in = t.rank() == there.sender ? back : there;
        side from = out.make_side(t, key_of(t.rank(), 1)), to = in.make_side(t, 7);
        MPI_Status status;
        MPI_Sendrecv(from.buffer.address(), from.count, from.type, t.peer(), 1, to.buffer.address(),
                     to.count, to.type, t.peer(), 1, MPI_COMM_WORLD, &status);
        to.buffer.expect(in.content(key_of(t.peer(), 1)));
        t.expect(to.buffer.right() && from.buffer.right() && tells(status, in.bytes), there.text);
        count_also(t, back);
    });
}

void sides_persistent(harness &t) {
    for_each_side(t, [&](const one_sided_message &m) {
        side mine = m.make_side(t, 1);
        MPI_Request request;
        if (t.rank() == m.sender) {
            MPI_Send_init(mine.buffer.address(), mine.count, mine.type, t.peer(), 1, MPI_COMM_WORLD,
                          &request);
        } else {
            MPI_Recv_init(mine.buffer.address(), mine.count, mine.type, t.peer(), 1, MPI_COMM_WORLD,
                          &request);
        }
        for (uint64_t round = 0; round < 3; ++round) {
            mine.buffer.refill(t.rank() == m.sender ? key_of(m.sender, round) : 7 + round);
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (t.rank() != m.sender) {
                mine.buffer.expect(m.content(key_of(m.sender, round)));
            }
            t.expect(mine.buffer.right(), "start " + std::to_string(round) + ": " + m.text);
            if (round > 0) {
                count_also(t, m);
            }
        }
        MPI_Request_free(&request);
    });
}

// All of them under way at once, received in the order in which they were sent, or against it.
void all_at_once(harness &t, bool against) {
    std::vector<one_sided_message> messages;
    for (int i = 0; i < 20; ++i) {
        for_few_sides(t, [&](const one_sided_message &m) { messages.push_back(m); });
    }
    std::vector<std::unique_ptr<side>> all;
    std::vector<MPI_Request> requests(messages.size());
    for (size_t i = 0; i < messages.size(); ++i) {
        messages[i].tag = static_cast<int>(i);
        const bool sends = t.rank() == messages[i].sender;
        all.emplace_back(new side(messages[i].make_side(t, sends ? key_of(t.rank(), i) : 7)));
    }
    const auto start = [&](size_t i, bool sends) {
        if (sends && t.rank() == messages[i].sender) {
            MPI_Isend(all[i]->buffer.address(), all[i]->count, all[i]->type, t.peer(),
                      messages[i].tag, MPI_COMM_WORLD, &requests[i]);
        } else if (!sends && t.rank() != messages[i].sender) {
            MPI_Irecv(all[i]->buffer.address(), all[i]->count, all[i]->type, t.peer(),
                      messages[i].tag, MPI_COMM_WORLD, &requests[i]);
        }
    };
    for (size_t i = 0; i < all.size(); ++i) {
        start(i, true);
    }
    if (against) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (size_t i = 0; i < all.size(); ++i) {
        start(against ? all.size() - 1 - i : i, false);
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (size_t i = 0; i < all.size(); ++i) {
        if (t.rank() != messages[i].sender) {
            all[i]->buffer.expect(messages[i].content(key_of(messages[i].sender, i)));
        }
        t.expect(all[i]->buffer.right(), messages[i].text);
    }
}

void sides_outstanding(harness &t) {
    all_at_once(t, false);
}

void sides_outstanding_unexpected(harness &t) {
    all_at_once(t, true);
}

const registration tests[] = {
    {"sides_send", sides_send, sides},
    {"sides_ssend", sides_ssend, sides},
    {"sides_expected", sides_expected, sides},
    {"sides_unexpected", sides_unexpected, sides},
    {"sides_any", sides_any, sides},
    {"sides_mprobe", sides_mprobe, sides},
    {"sides_improbe", sides_improbe, sides},
    {"sides_sendrecv", sides_sendrecv, sides},
    {"sides_persistent", sides_persistent, sides},
    {"sides_outstanding", sides_outstanding, sides},
    {"sides_outstanding_unexpected", sides_outstanding_unexpected, sides}};

}  // namespace
}  // namespace mpi_test
