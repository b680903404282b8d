#include "random_types/message.hpp"

#include <algorithm>

#include "support/random_type.hpp"

namespace mpi_test {
namespace {

enum class route { same, to_bytes, from_bytes, to_other, route_count };

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

}  // namespace

void place(random_stream &random, side &s, size_t *used_p) {
    type_map bytes = s.bytes();
    // UCX moves contiguous data by itself. It does not know the simulated GPU, and Debian's UCX
    // knows no GPU at all.
    s.in_host = bytes.is_contiguous();
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

}  // namespace mpi_test
