#include "uct/cuda_nc/protocol/fuzz_messages.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "uct/cuda_nc/address.hpp"
#include "uct/cuda_nc/protocol/announcement.hpp"

namespace cuda_nc::uct {

using namespace wire;

namespace {

template <typename T>
std::vector<char> bytes_of(const T &record, size_t length = sizeof(T)) {
    const auto *first = reinterpret_cast<const char *>(&record);
    return {first, first + length};
}

template <typename T>
T get(const std::vector<char> &bytes, size_t at) {
    T value = {};
    if (at + sizeof(T) <= bytes.size()) {
        std::memcpy(&value, bytes.data() + at, sizeof(T));
    }
    return value;
}

template <typename T>
void set(std::vector<char> &bytes, size_t at, T value) {
    if (at + sizeof(T) <= bytes.size()) {
        std::memcpy(bytes.data() + at, &value, sizeof(T));
    }
}

}  // namespace

uint64_t message_fuzzer::number() {
    static const uint64_t edges[] = {0,
                                     1,
                                     2,
                                     3,
                                     4,
                                     15,
                                     16,
                                     1023,
                                     1024,
                                     4096,
                                     65535,
                                     65536,
                                     1 << 20,
                                     uint64_t{1} << 31,
                                     uint64_t{1} << 32,
                                     uint64_t{1} << 47,
                                     uint64_t{1} << 62,
                                     uint64_t{1} << 63,
                                     ~uint64_t{0}};
    switch (below(4)) {
        case 0:
            return random_();
        case 1:
            return below(1 << 20);
        case 2:
            return edges[below(std::size(edges))] + below(3) - 1;
        default:
            return edges[below(std::size(edges))];
    }
}

uint64_t message_fuzzer::message_number(const fuzz_knowledge &known) {
    return known.numbers.empty() || one_in(6) ? number() : any(known.numbers);
}

process_id message_fuzzer::process(const fuzz_knowledge &known) {
    process_id one = any(known.processes);
    if (one_in(8)) {
        one.started += below(3);
    }
    return one;
}

gpu::ipc_handle message_fuzzer::handle(const fuzz_knowledge &known) {
    gpu::ipc_handle one = any(known.handles);
    if (one_in(4)) {
        one.bytes[below(sizeof(one.bytes))] ^= static_cast<char>(1 << below(8));
    }
    return one;
}

sender_offer message_fuzzer::offer(const fuzz_knowledge &known) {
    sender_offer one = {};
    one.channels = static_cast<uint32_t>(one_in(3) ? number() : below(20));
    one.flags = static_cast<uint32_t>(one_in(3) ? number() : below(4));
    std::memcpy(one.gpu, "another", 7);
    if (one_in(3)) {
        const std::string &own = gpu::platform::instance().get_device(0)->properties().bus_id;
        std::memcpy(one.gpu, own.data(), std::min(own.size(), sizeof(one.gpu)));
    }
    one.process = process(known);
    one.sequence = one_in(2) ? number() : below(100) * gpu::pipe_sequence_step;
    one.credits = one_in(2) ? number() : below(100) * 256;
    one.memory = handle(known);
    one.hash_low = number();
    one.hash_high = number();
    return one;
}

source_descriptor message_fuzzer::source(const fuzz_knowledge &known) {
    source_descriptor one = known.source;
    for (uint64_t changes = below(4); changes != 0; --changes) {
        switch (below(8)) {
            case 0:
                one.allocation = number();
                break;
            case 1:
                one.address = number();
                break;
            case 2:
                one.displacement_0 = static_cast<int64_t>(number());
                break;
            case 3:
                one.memory = handle(known);
                break;
            case 4:
                one.num_dims = static_cast<uint32_t>(one_in(2) ? number() : below(max_dims + 2));
                break;
            case 5:
                one.block_length = number();
                break;
            case 6:
                one.first_displacement = static_cast<int64_t>(number());
                break;
            default:
                one.dims[below(max_dims)] = {number(), static_cast<int64_t>(number())};
                break;
        }
    }
    return one;
}

std::vector<char> message_fuzzer::announcement_of(const fuzz_knowledge &known,
                                                  const wire::control &like) {
    std::vector<char> made(longest_announcement);
    const announcement what = {like.from, like.identity, {offer(known), source(known)}};
    made.resize(write_announcement(what, made.data()));
    const std::vector<char> rts =
        bytes_of(rts_head{number(), number(), like.offset, one_in(2) ? 0 : number(), like.length});
    made.insert(made.end(), rts.begin(), rts.end());
    return made;
}

std::vector<char> message_fuzzer::control(const fuzz_knowledge &known) {
    wire::control one = {};
    one.version = protocol_version;
    one.kind = static_cast<control_kind>(below(num_control_kinds));
    one.slot = static_cast<uint16_t>(one_in(4) ? number() : below(6));
    one.flags = static_cast<uint32_t>(one_in(2) ? number() : below(32));
    one.to = message_number(known);
    one.from = one_in(8) ? 0 : message_number(known);
    one.identity = one_in(4) ? any(known.identities) : known.author;
    one.offset = one_in(2) ? number() : any(known.requests);
    one.length = number();
    one.process = process(known);
    one.handle = handle(known);
    if (one.kind == control_kind::early_offer) {
        return announcement_of(known, one);
    } else if (one.kind == control_kind::accept_network) {
        one.network.address = number();
        one.network.key_length = static_cast<uint32_t>(one_in(2) ? number() : 8);
    } else if (one.kind == control_kind::accept_straight) {
        one.memory.allocation = one_in(3) ? number() : known.source.allocation;
        one.memory.address = one_in(3) ? number() : known.source.address;
        one.offset = one_in(2) ? number() : below(1 << 20);
        one.length = one_in(2) ? number() : any(known.lengths);
    } else {
        one.pipe.channels = static_cast<uint32_t>(one_in(3) ? number() : 1 + below(8));
        one.pipe.chunk_size = static_cast<uint32_t>(one_in(3) ? number() : 4096 << below(5));
        one.pipe.depth = static_cast<uint32_t>(one_in(3) ? number() : 1 + below(8));
        one.pipe.sequence = one_in(3) ? number() : (1 + below(100)) * gpu::pipe_sequence_step;
        one.pipe.segment = one_in(2) ? number() : 1 << 20;
        one.pipe.flags = one_in(2) ? number() : below(100) * 256;
        one.pipe.flags_memory = handle(known);
        one.offset = one_in(2) ? number() : below(1 << 20) / 256 * 256;
    }
    return bytes_of(one, length_of(one.kind));
}

std::vector<char> message_fuzzer::data(const fuzz_knowledge &known) {
    data_prefix prefix = {};
    const uint64_t kind = one_in(10) ? number() & ~mark : below(3);
    prefix.mark_and_kind = mark | kind;
    prefix.message = message_number(known);
    prefix.identity = one_in(4) ? any(known.identities) : known.author;
    prefix.length = number();
    std::vector<char> made = bytes_of(prefix);
    auto append = [&made](const std::vector<char> &more) {
        made.insert(made.end(), more.begin(), more.end());
    };
    if (kind == static_cast<uint64_t>(data_kind::offer)) {
        append(bytes_of(offer(known)));
    }
    append(bytes_of(rndv_header{any(known.requests), one_in(2) ? number() : below(2) * 1024}));
    if (kind == static_cast<uint64_t>(data_kind::offer) && one_in(2)) {
        append(std::vector<char>(one_in(2) ? 1024 : below(3000), '\x33'));
    }
    return made;
}

void message_fuzzer::change(std::vector<char> &bytes) {
    for (uint64_t changes = 1 + below(3); changes != 0 && !bytes.empty(); --changes) {
        const size_t at = below(bytes.size());
        switch (below(4)) {
            case 0:
                bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
                break;
            case 1:
                bytes[at] = static_cast<char>(random_());
                break;
            case 2:
                set<uint32_t>(bytes, at / 4 * 4, static_cast<uint32_t>(number()));
                break;
            default:
                set<uint64_t>(bytes, at / 8 * 8, number());
                break;
        }
    }
}

void message_fuzzer::resize(std::vector<char> &bytes) {
    static const size_t lengths[] = {0, 1, 8, 15, 16, 39, 40, 47, 48, 56, 64, 127, 128, 208, 232};
    bytes.resize(one_in(2)   ? below(bytes.size() + 1)
                 : one_in(2) ? lengths[below(std::size(lengths))]
                             : bytes.size() + below(3000));
}

// A stranger knows the peer's identity or numbers of messages, but not both, and no send of UCP by
// its number.
void message_fuzzer::restrain_control(const fuzz_knowledge &known, std::vector<char> &bytes) {
    if (known.hostile) {
        return;
    }
    static_assert(offsetof(wire::control, identity) == offsetof(announcement_head, identity));
    const bool announces = get<uint8_t>(bytes, offsetof(wire::control, kind)) ==
                           static_cast<uint8_t>(control_kind::early_offer);
    if (announces || one_in(2)) {
        set<uint64_t>(bytes, offsetof(wire::control, identity), stranger());
        return;
    }
    set<uint64_t>(bytes, offsetof(wire::control, to), stranger());
    set<uint64_t>(bytes, offsetof(wire::control, offset), stranger());
}

// What `request` of UCP's header is: one of those that there are; for a stranger nobody's. A marked
// message has the header of UCP's data behind our own records.
void message_fuzzer::restrain_data(const fuzz_knowledge &known, std::vector<char> &bytes) {
    const auto kind = get<uint64_t>(bytes, offsetof(data_prefix, mark_and_kind)) & ~mark;
    const size_t header = kind == static_cast<uint64_t>(data_kind::offer)
                              ? sizeof(data_prefix) + sizeof(sender_offer)
                              : sizeof(data_prefix);
    const auto request = get<uint64_t>(bytes, header);
    const bool is_one =
        std::find(known.requests.begin(), known.requests.end(), request) != known.requests.end();
    if (!known.hostile) {
        set(bytes, header, known.requests.front());
        set<uint64_t>(bytes, offsetof(data_prefix, message), stranger());
    } else if (!is_one) {
        set(bytes, header, any(known.requests));
    }
}

std::vector<char> message_fuzzer::acknowledgement(const fuzz_knowledge &known) {
    wire::end_of_pull made = {};
    made.ats.status = static_cast<int8_t>(one_in(4) ? number() : 0);
    made.ats.size = known.lengths.empty() || one_in(4) ? number() : any(known.lengths);
    made.message = message_number(known);
    const auto *bytes = reinterpret_cast<const char *>(&made);
    return {bytes, bytes + sizeof(made)};
}

stub::recorded message_fuzzer::next(const fuzz_knowledge &known,
                                    const std::vector<stub::recorded> &recorded) {
    stub::recorded made = {};
    const uint64_t how = below(10);
    if (how == 0) {  // noise
        made.id = one_in(2) ? control_id : one_in(2) ? rts_id : one_in(2) ? ats_id : rndv_data_id;
        made.bytes.resize(below(600));
        std::generate(made.bytes.begin(), made.bytes.end(),
                      [this] { return static_cast<char>(random_()); });
        if (one_in(2)) {
            set<uint8_t>(made.bytes, 0, protocol_version);
        }
    } else if (how < 5 && !recorded.empty()) {
        made = any(recorded);
    } else if (how < 9) {
        made = {control_id, control(known)};
    } else if (one_in(4)) {
        made = {ats_id, acknowledgement(known)};
    } else {
        made = {rndv_data_id, data(known)};
    }
    if (how < 5 ? !one_in(5) : one_in(3)) {
        change(made.bytes);
    }
    if (one_in(6)) {
        resize(made.bytes);
    }
    if (made.id == control_id) {
        restrain_control(known, made.bytes);
    } else if (made.id == ats_id) {
        set(made.bytes, 0, known.hostile ? any(known.requests) : known.requests.front());
    } else if (made.id == rndv_data_id) {
        set(made.bytes, sizeof(uint64_t), get<uint64_t>(made.bytes, sizeof(uint64_t)) | mark);
        restrain_data(known, made.bytes);
    }
    return made;
}

}  // namespace cuda_nc::uct
