#include "tools/perftest/mpi/mpi_exchange.hpp"

#include <climits>
#include <deque>

#include "tools/perftest/mpi/datatype.hpp"
#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {
namespace {

using messages_of_exchange = std::vector<exchanged_message>;

class persistent_exchange final : public message_exchange {
  public:
    persistent_exchange(const char *from, char *to, const messages_of_exchange &messages) {
        for (const exchanged_message &one : messages) {
            add(MPI_Recv_init, "MPI_Recv_init", to + one.received_at, *one.received, one.peer,
                one.receive_tag);
        }
        for (const exchanged_message &one : messages) {
            add(MPI_Send_init, "MPI_Send_init", from + one.sent_at, *one.sent, one.peer,
                one.send_tag);
        }
    }
    ~persistent_exchange() override {
        for (MPI_Request &one : requests_) {
            MPI_Request_free(&one);
        }
    }
    persistent_exchange(const persistent_exchange &) = delete;
    persistent_exchange &operator=(const persistent_exchange &) = delete;

    void run() override {
        const int count = static_cast<int>(requests_.size());
        check_mpi(MPI_Startall(count, requests_.data()), "MPI_Startall");
        check_mpi(MPI_Waitall(count, requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }

  private:
    template <class Function, class Address>
    void add(Function init, const char *name, Address at, const message_type &type, int peer,
             int tag) {
        MPI_Request request;
        check_mpi(
            init(at, mpi(type).count, mpi(type).datatype, peer, tag, MPI_COMM_WORLD, &request),
            name);
        requests_.push_back(request);
    }

    std::vector<MPI_Request> requests_;
};

// The messages as a collective takes them, in the order that both ranks of each agree on.
template <class Side>
void add_sides(const messages_of_exchange &messages, Side *sent_p, Side *received_p) {
    for (size_t i : order_of_sends(messages)) {
        sent_p->add(messages[i].peer, *messages[i].sent, messages[i].sent_at);
    }
    for (size_t i : order_of_receives(messages)) {
        received_p->add(messages[i].peer, *messages[i].received, messages[i].received_at);
    }
}

// A message, or a part of one.
struct placed_type {
    const mpi_type *type;
    size_t at;
};

// Whether the parts are one block of contiguous memory: of one of MPI's own types, end to end.
bool are_one_block(const std::vector<placed_type> &parts) {
    size_t end = parts.front().at;
    for (const placed_type &part : parts) {
        int size = 0;
        check_mpi(MPI_Type_size(part.type->datatype, &size), "MPI_Type_size");
        if (part.type->owned || part.type->datatype != parts.front().type->datatype ||
            part.at != end) {
            return false;
        }
        end += static_cast<size_t>(part.type->count) * static_cast<size_t>(size);
    }
    return true;
}

MPI_Datatype make_struct(const std::vector<placed_type> &parts) {
    std::vector<int> counts;
    std::vector<MPI_Aint> places;
    std::vector<MPI_Datatype> types;
    for (const placed_type &part : parts) {
        counts.push_back(part.type->count);
        places.push_back(static_cast<MPI_Aint>(part.at));
        types.push_back(part.type->datatype);
    }
    MPI_Datatype made;
    check_mpi(MPI_Type_create_struct(static_cast<int>(parts.size()), counts.data(), places.data(),
                                     types.data(), &made),
              "MPI_Type_create_struct");
    return made;
}

// One side of MPI_Alltoallw: all that is sent to each rank, or received from it.
class joined_messages {
  public:
    explicit joined_messages(int ranks)
        : parts_(static_cast<size_t>(ranks)),
          counts_(parts_.size(), 0),
          places_(parts_.size(), 0),
          types_(parts_.size(), MPI_BYTE) {}

    // In the order that both ranks agree on.
    void add(int peer, const message_type &type, size_t at) {
        parts_[static_cast<size_t>(peer)].push_back({&mpi(type), at});
    }
    void join() {
        for (size_t rank = 0; rank < parts_.size(); ++rank) {
            if (!parts_[rank].empty()) {
                join(rank, parts_[rank]);
            }
        }
    }

    // By rank; those without messages have the count 0.
    const int *counts() const { return counts_.data(); }
    const int *places() const { return places_.data(); }
    const MPI_Datatype *types() const { return types_.data(); }

  private:
    void join(size_t rank, const std::vector<placed_type> &parts) {
        if (parts.size() > 1 && !are_one_block(parts)) {
            joined_.emplace_back(make_struct(parts), 1, true);
            check_mpi(MPI_Type_commit(&joined_.back().datatype), "MPI_Type_commit");
            counts_[rank] = 1;
            types_[rank] = joined_.back().datatype;
            return;
        }
        if (parts.front().at > INT_MAX) {
            throw run_error(
                "MPI_Alltoallw reaches no further than 2 GiB: take a smaller --box or --halo, or "
                "another way (--by)");
        }
        uint64_t count = 0;
        for (const placed_type &part : parts) {
            count += static_cast<uint64_t>(part.type->count);
        }
        counts_[rank] = to_mpi_count(count);
        places_[rank] = static_cast<int>(parts.front().at);
        types_[rank] = parts.front().type->datatype;
    }

    std::vector<std::vector<placed_type>> parts_;
    std::deque<mpi_type> joined_;
    std::vector<int> counts_, places_;
    std::vector<MPI_Datatype> types_;
};

class alltoallw_exchange final : public message_exchange {
  public:
    alltoallw_exchange(const char *from, char *to, const messages_of_exchange &messages, int ranks)
        : from_(from), to_(to), sent_(ranks), received_(ranks) {
        add_sides(messages, &sent_, &received_);
        sent_.join();
        received_.join();
    }

    void run() override {
        check_mpi(MPI_Alltoallw(from_, sent_.counts(), sent_.places(), sent_.types(), to_,
                                received_.counts(), received_.places(), received_.types(),
                                MPI_COMM_WORLD),
                  "MPI_Alltoallw");
    }

  private:
    const char *const from_;
    char *const to_;
    joined_messages sent_, received_;
};

// The edges of one direction, with their messages.
struct edges {
    std::vector<int> peers, counts;
    std::vector<MPI_Aint> places;
    std::vector<MPI_Datatype> types;

    void add(int peer, const message_type &type, size_t at) {
        peers.push_back(peer);
        counts.push_back(mpi(type).count);
        places.push_back(static_cast<MPI_Aint>(at));
        types.push_back(mpi(type).datatype);
    }
    int size() const { return static_cast<int>(peers.size()); }
};

// Two ranks may have several edges: MPI matches them in the order in which each names them.
class neighbor_exchange final : public message_exchange {
  public:
    neighbor_exchange(const char *from, char *to, const messages_of_exchange &messages)
        : from_(from), to_(to) {
        add_sides(messages, &sent_, &received_);
        check_mpi(MPI_Dist_graph_create_adjacent(
                      MPI_COMM_WORLD, received_.size(), received_.peers.data(), MPI_UNWEIGHTED,
                      sent_.size(), sent_.peers.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph_),
                  "MPI_Dist_graph_create_adjacent");
    }
    ~neighbor_exchange() override { MPI_Comm_free(&graph_); }
    neighbor_exchange(const neighbor_exchange &) = delete;
    neighbor_exchange &operator=(const neighbor_exchange &) = delete;

    void run() override {
        check_mpi(MPI_Neighbor_alltoallw(from_, sent_.counts.data(), sent_.places.data(),
                                         sent_.types.data(), to_, received_.counts.data(),
                                         received_.places.data(), received_.types.data(), graph_),
                  "MPI_Neighbor_alltoallw");
    }

  private:
    const char *const from_;
    char *const to_;
    edges sent_, received_;
    MPI_Comm graph_ = MPI_COMM_NULL;
};

}  // namespace

const std::vector<std::string> &exchange_ways() {
    static const std::vector<std::string> all = {"isend", "persistent", "alltoallw", "neighbor"};
    return all;
}

std::unique_ptr<message_exchange> make_mpi_exchange(const std::string &way, const void *from,
                                                    void *to,
                                                    const messages_of_exchange &messages) {
    const auto *source = static_cast<const char *>(from);
    auto *target = static_cast<char *>(to);
    if (way == "persistent") {
        return std::make_unique<persistent_exchange>(source, target, messages);
    }
    if (way == "alltoallw") {
        int ranks = 1;
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        return std::make_unique<alltoallw_exchange>(source, target, messages, ranks);
    }
    if (way == "neighbor") {
        return std::make_unique<neighbor_exchange>(source, target, messages);
    }
    throw run_error("no messages are exchanged by " + way +
                    ": nc_perftest mpi --help has the ways");
}

}  // namespace cuda_nc::tools
