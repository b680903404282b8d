// Random nested datatypes of every MPI constructor travel between two ranks in batches; every byte
// of every buffer, the gaps included, is compared with type maps that this test computes itself.
//
// random_types [--types N] [--seed S] [--memory KINDS] [--batch B] [--bytes LARGEST] [--verbose]
#include "support/made_type.hpp"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>

#include "support/memory.hpp"
#include "support/random_type.hpp"

using namespace mpi_test;

namespace {

enum class route { same, to_bytes, from_bytes, to_other, route_count };
enum class send_call { isend, issend, persistent, count };
enum class receive_call { irecv, probe, persistent, count };

// One side of one message.
struct side {
    made_type type;
    int count;
    size_t region = 0;  // offset in the arena
    size_t base = 0;    // offset of the address that MPI is given
    bool in_host = false;
    bool bottom = false;  // absolute addresses and MPI_BOTTOM

    type_map bytes() const { return repeated(type.map(), count); }
};

struct message {
    int sender;
    send_call send_by;
    receive_call receive_by;
    side from;
    side to;
};

constexpr size_t guard = 64;

// Random blocks of bytes that do not overlap, `size` bytes in all.
made_type random_bytes(random_stream &random, int64_t size) {
    std::vector<placement> blocks;
    int64_t at = 0;
    while (size > 0) {
        int length = static_cast<int>(std::min<int64_t>(size, random.between(1, 1 + size / 2)));
        blocks.push_back({length, at});
        at += length + random.between(0, 9);
        size -= length;
    }
    made_type type = hindexed(blocks, basic("BYTE"));
    type.commit();
    return type;
}

side packed_side(int64_t size) {
    made_type type = duplicate(basic("BYTE"));
    return {std::move(type.commit()), static_cast<int>(size)};
}

// Takes room for the side in the arena.
void place(random_stream &random, side &s, size_t *used_p) {
    type_map bytes = s.bytes();
    // UCX itself moves contiguous data, and does not know a simulated GPU; Debian's no GPU at all
    s.in_host = bytes.is_contiguous() || s.type.map().is_contiguous();
    s.bottom = bytes.size() > 0 && random.one_in(8);
    size_t odd = random.one_in(4) ? random.next() % 16 : 0;
    s.region = *used_p;
    int64_t low = bytes.true_lb();
    s.base = s.region + guard + odd - static_cast<size_t>(low);
    *used_p += (guard * 2 + odd + static_cast<size_t>(bytes.true_ub() - low)) / 64 * 64 + 64;
}

message random_message(random_stream &random, int64_t largest) {
    random_type_limits limits;
    if (random.one_in(12)) {
        limits.bytes = largest;
        limits.span = 4 * largest;
        limits.runs = 60000;
    }
    int sender = static_cast<int>(random.next() % 2);
    auto send_by = static_cast<send_call>(random.next() % uint64_t(send_call::count));
    auto receive_by = static_cast<receive_call>(random.next() % uint64_t(receive_call::count));
    auto way = static_cast<route>(random.next() % uint64_t(route::route_count));
    made_type type = random_type(random, limits);
    int count = static_cast<int>(random.between(0, 7));
    if (type.map().size() * count > 2 * largest) {
        count = 1;
    }
    type_map bytes = repeated(type.map(), count);
    if (bytes.overlaps() || bytes.has_padding()) {
        // an overlapping receive is an error in MPI; padding is left to libraries, so keep it whole
        way = bytes.overlaps() ? route::to_bytes : route::same;
    }
    if (bytes.overlaps() && bytes.has_padding()) {
        count = 0;
        bytes = type_map();
    }
    side typed = {std::move(type), count};
    switch (way) {
        case route::to_bytes:
            return {sender, send_by, receive_by, std::move(typed), packed_side(bytes.size())};
        case route::from_bytes:
            return {sender, send_by, receive_by, packed_side(bytes.size()), std::move(typed)};
        case route::to_other:
            return {sender, send_by, receive_by, std::move(typed),
                    side{random_bytes(random, bytes.size()), 1}};
        default: {
            made_type copy = duplicate(typed.type);
            return {sender, send_by, receive_by, std::move(typed),
                    side{std::move(copy.commit()), count}};
        }
    }
}

// The bytes of one rank: host arena, device arena, and what both must hold in the end.
class arena {
  public:
    arena(memory &device, size_t length) : device_(device), length_(length) {
        host_.resize(length);
        on_device_ = static_cast<char *>(device.allocate(length));
    }
    ~arena() { device_.release(on_device_); }
    arena(const arena &) = delete;
    arena &operator=(const arena &) = delete;

    void fill(const std::vector<char> &content) {
        host_ = content;
        expected_host_ = content;
        expected_device_ = content;
        device_.copy(on_device_, content.data(), length_);
    }
    char *address(const side &s) { return (s.in_host ? host_.data() : on_device_) + s.base; }

    void expect(const side &s, const std::vector<char> &packed) {
        std::vector<char> &expected = s.in_host ? expected_host_ : expected_device_;
        s.bytes().unpack(expected.data() + s.base, packed.data(),
                         static_cast<int64_t>(packed.size()));
    }
    void fetch() {
        found_device_.resize(length_);
        device_.copy(found_device_.data(), on_device_, length_);
    }
    void forgive_padding(const side &s) {
        std::vector<char> &expected = s.in_host ? expected_host_ : expected_device_;
        s.bytes().forgive_padding(expected.data() + s.base,
                                  (s.in_host ? host_ : found_device_).data() + s.base);
    }
    // Offset of the first wrong byte in [start, end), or npos.
    size_t first_wrong(size_t start, size_t end) const {
        for (size_t i = start; i < end; ++i) {
            if (host_[i] != expected_host_[i] || found_device_[i] != expected_device_[i]) {
                return i;
            }
        }
        return std::string::npos;
    }
    bool right() const { return host_ == expected_host_ && found_device_ == expected_device_; }

  private:
    memory &device_;
    size_t length_;
    char *on_device_;
    std::vector<char> host_;
    std::vector<char> expected_host_, expected_device_, found_device_;
};

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

struct options {
    int types = 500;
    uint64_t seed = 0;
    std::string memory = "host";
    int batch = 24;
    int64_t largest = 1 << 20;
    bool verbose = false;
};

options parse(int argc, char **argv) {
    options o;
    for (int i = 1; i < argc; ++i) {
        std::string name = argv[i];
        std::string value = i + 1 < argc ? argv[i + 1] : "";
        if (name == "--types") {
            o.types = std::stoi(value);
        } else if (name == "--seed") {
            o.seed = std::stoull(value);
        } else if (name == "--memory") {
            o.memory = value;
        } else if (name == "--batch") {
            o.batch = std::stoi(value);
        } else if (name == "--bytes") {
            o.largest = std::stoll(value);
        } else if (name == "--verbose") {
            o.verbose = true;
            continue;
        } else {
            std::fprintf(stderr, "unknown option %s\n", name.c_str());
            std::exit(2);
        }
        ++i;
    }
    return o;
}

void report(int rank, uint64_t seed, int number, const message &m, size_t at, const char *what) {
    std::printf(
        "WRONG %s: rank %d, seed %llu, batch of one from type %d: sender %d, byte %zu of its "
        "region; send %d x %s%s; receive %d x %s%s\n",
        what, rank, static_cast<unsigned long long>(seed), number, m.sender, at, m.from.count,
        m.from.type.text().substr(0, 600).c_str(), m.from.bottom ? " at MPI_BOTTOM" : "",
        m.to.count, m.to.type.text().substr(0, 600).c_str(), m.to.bottom ? " at MPI_BOTTOM" : "");
    std::fflush(stdout);
}

// Returns the number of messages with a wrong byte on this rank.
int run_batch(int rank, memory &device, const options &o, int first) {
    std::vector<message> messages;
    size_t used = 0;
    int wrong = 0;
    for (int i = 0; i < o.batch; ++i) {
        random_stream random{o.seed, static_cast<uint64_t>(first + i)};
        messages.push_back(random_message(random, o.largest));
        message &m = messages.back();
        place(random, m.from, &used);
        place(random, m.to, &used);
        for (const made_type *type : {&m.from.type, &m.to.type}) {
            if (!type->agrees()) {
                report(rank, o.seed, first + i, m, 0, "BOUNDS");
                ++wrong;
            }
        }
        if (o.verbose && rank == 0) {
            report(rank, o.seed, first + i, m, 0, "(no: verbose)");
        }
    }
    std::vector<char> content[2] = {std::vector<char>(used), std::vector<char>(used)};
    for (uint64_t owner : {0, 1}) {
        random_stream{o.seed, static_cast<uint64_t>(first), 77 + owner}.fill(content[owner].data(),
                                                                             used);
    }
    arena mine(device, used);
    mine.fill(content[rank]);
    exchange(rank, mine, messages, (first / o.batch) % 2 != 0);
    mine.fetch();
    for (const message &m : messages) {
        if (m.sender != rank) {
            mine.expect(m.to, m.from.bytes().pack(content[m.sender].data() + m.from.base));
            mine.forgive_padding(m.to);
        }
    }
    if (mine.right()) {
        return wrong;
    }
    for (size_t i = 0; i < messages.size(); ++i) {
        const message &m = messages[i];
        size_t end = i + 1 < messages.size() ? messages[i + 1].from.region : used;
        size_t at = mine.first_wrong(m.from.region, end);
        if (at != std::string::npos) {
            bool in_send = at < m.to.region;
            report(rank, o.seed, first + static_cast<int>(i), m,
                   at - (in_send ? m.from.region : m.to.region),
                   in_send ? "SEND BUFFER" : "RECEIVE BUFFER");
            ++wrong;
        }
    }
    return wrong;
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    options o = parse(argc, argv);
    if (o.seed == 0) {
        o.seed = static_cast<uint64_t>(std::time(nullptr));
    }
    MPI_Bcast(&o.seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        std::printf("seed %llu\n", static_cast<unsigned long long>(o.seed));
        std::printf("RUN random_types\n");
        std::fflush(stdout);
    }
    std::unique_ptr<memory> device = open_memory(o.memory, rank);
    int wrong = 0;
    int done = 0;
    for (; done < o.types && wrong < 20; done += o.batch) {
        int here = run_batch(rank, *device, o, done);
        MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += here;
    }
    if (rank == 0) {
        std::printf("types %d\n%s random_types%s\n", done, wrong == 0 ? "PASS" : "FAIL",
                    wrong == 0 ? "" : (": " + std::to_string(wrong) + " wrong").c_str());
        std::fflush(stdout);
    }
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
