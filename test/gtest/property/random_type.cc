#include "property/random_type.hpp"

#include <algorithm>

namespace cuda_nc::test {

uint64_t random_type::size() const {
    uint64_t sum = 0;
    for (const map_entry &entry : map) {
        sum += entry.length;
    }
    return sum;
}

// The bounds of a constructed type are those of all copies of what it is made of; of nothing, 0.
void random_types::place(random_type *type, const random_type &inner, int64_t displacement,
                         uint64_t count, bool *empty) {
    for (uint64_t i = 0; i < count; ++i) {
        const int64_t shift = displacement + static_cast<int64_t>(i) * inner.extent();
        for (const map_entry &entry : inner.map) {
            type->map.push_back({entry.displacement + shift, entry.length});
        }
        type->lower = *empty ? inner.lower + shift : std::min(type->lower, inner.lower + shift);
        type->upper = *empty ? inner.upper + shift : std::max(type->upper, inner.upper + shift);
        *empty = false;
    }
}

uint64_t random_types::copies(const random_type &inner) {
    if (below(40) == 0) {
        return 0;
    }
    const uint64_t most = std::min(limits_.bytes / std::max<uint64_t>(inner.size(), 1),
                                   limits_.entries / std::max<uint64_t>(inner.map.size(), 1));
    return most == 0 ? 1 : 1 + below(below(3) == 0 ? most : std::min<uint64_t>(most, 8));
}

// A distance in units of `unit` bytes: mostly a little, at times negative, zero or far.
int64_t random_types::gap(int64_t unit) {
    const int64_t far = std::max<int64_t>(limits_.far / std::max<int64_t>(std::abs(unit), 1), 1);
    switch (below(8)) {
        case 0:
            return 0;
        case 1:
            return between(-5, 5);
        case 2:
            return between(-far, far);
        default:
            return between(1, 6);
    }
}

random_type random_types::basic() {
    static const uint64_t lengths[] = {1, 2, 4, 8, 8, 8, 16, 32, 64, 3, 12, 17, 24, 100, 256};
    const uint64_t length = lengths[below(sizeof(lengths) / sizeof(lengths[0]))];
    random_type type;
    type.map = {{0, length}};
    type.upper = static_cast<int64_t>(length);
    type.text = "b" + std::to_string(length);
    if (below(6) == 0) {  // a pair with padding, as MPI_DOUBLE_INT
        type.map = {{0, 8}, {8, 4}};
        type.upper = 16;
        type.text = "pair";
    }
    return type;
}

random_type random_types::contiguous(const random_type &inner) {
    random_type type;
    bool empty = true;
    const uint64_t count = copies(inner);
    place(&type, inner, 0, count, &empty);
    type.text = "contiguous(" + std::to_string(count) + "," + inner.text + ")";
    return type;
}

random_type random_types::vector(const random_type &inner, bool in_bytes) {
    random_type type;
    bool empty = true;
    const uint64_t total = copies(inner);
    const uint64_t length = below(2) == 0 ? 1 : below(30) == 0 ? 0 : 1 + below(4);
    const uint64_t count = length == 0 ? below(5) : (total + length - 1) / length;
    int64_t stride =
        (static_cast<int64_t>(length) + gap(inner.extent())) * (below(10) == 0 ? -1 : 1);
    if (in_bytes) {
        stride = stride * inner.extent() + between(-3, 9) * between(0, 1);
    }
    const int64_t unit = in_bytes ? 1 : inner.extent();
    for (uint64_t i = 0; i < count; ++i) {
        place(&type, inner, static_cast<int64_t>(i) * stride * unit, length, &empty);
    }
    type.text = std::string(in_bytes ? "hvector(" : "vector(") + std::to_string(count) + "," +
                std::to_string(length) + "," + std::to_string(stride) + "," + inner.text + ")";
    return type;
}

random_type random_types::indexed(const random_type &inner, bool in_bytes, bool same_length) {
    random_type type;
    bool empty = true;
    uint64_t left = copies(inner);
    const uint64_t one_length = 1 + below(4);
    int64_t at = 0;
    const bool scattered = below(3) == 0;
    const int64_t unit = in_bytes ? 1 : inner.extent();
    type.text = "indexed(";
    for (unsigned i = 0; left != 0; ++i) {
        uint64_t length = same_length ? one_length : below(5);
        length = std::min(length, left);
        left -= std::max<uint64_t>(length, 1);
        place(&type, inner, at * unit, length, &empty);
        if (i < 6) {
            type.text += std::to_string(length) + "@" + std::to_string(at * unit) + " ";
        }
        if (scattered) {
            at = gap(unit) * between(1, 30);
        } else {
            at += (static_cast<int64_t>(length) + gap(unit)) * (in_bytes ? inner.extent() : 1);
            at = std::abs(at * unit) > 4 * limits_.far ? 0 : at;
        }
    }
    type.text += inner.text + ")";
    return type;
}

random_type random_types::structure(const random_type &first, uint64_t depth) {
    random_type type;
    bool empty = true;
    const uint64_t members = 1 + below(4);
    int64_t at = 0;
    type.text = "struct(";
    for (uint64_t i = 0; i < members; ++i) {
        const random_type member = i == 0 ? first : make(below(depth));
        uint64_t count = below(20) == 0 ? 0 : 1 + below(3);
        if ((type.map.size() + count * member.map.size()) > 2 * limits_.entries) {
            count = 0;
        }
        place(&type, member, at, count, &empty);
        type.text += std::to_string(count) + "@" + std::to_string(at) + " " + member.text + " ";
        at += static_cast<int64_t>(count) * member.extent() + gap(1);
    }
    type.text += ")";
    return type;
}

random_type random_types::subarray(const random_type &inner) {
    const unsigned num_dims = 1 + static_cast<unsigned>(below(4));
    const bool fortran = below(2) == 0;
    uint64_t left = std::max<uint64_t>(copies(inner), 1);
    std::vector<int64_t> sizes, parts, starts;
    int64_t elements = 1;
    random_type type;
    type.text = fortran ? "subarrayF(" : "subarray(";
    for (unsigned d = 0; d < num_dims; ++d) {
        const int64_t part = 1 + static_cast<int64_t>(below(std::min<uint64_t>(left, 9)));
        left = std::max<uint64_t>(left / static_cast<uint64_t>(part), 1);
        const int64_t size = part + between(0, 3);
        sizes.push_back(size);
        parts.push_back(part);
        starts.push_back(between(0, size - part));
        elements *= size;
        type.text += std::to_string(part) + "/" + std::to_string(size) + "@" +
                     std::to_string(starts.back()) + " ";
    }
    type.text += inner.text + ")";
    // C order: the last index varies fastest; Fortran order: the first
    std::vector<unsigned> order;  // from slowest to fastest
    for (unsigned d = 0; d < num_dims; ++d) {
        order.push_back(fortran ? num_dims - 1 - d : d);
    }
    std::vector<int64_t> index(num_dims, 0);
    bool empty = true;
    for (bool more = true; more;) {
        int64_t element = 0;
        for (unsigned d : order) {
            element = element * sizes[d] + starts[d] + index[d];
        }
        place(&type, inner, element * inner.extent(), 1, &empty);
        more = false;
        for (unsigned d = num_dims; d-- > 0 && !more;) {
            index[order[d]] = (index[order[d]] + 1) % parts[order[d]];
            more = index[order[d]] != 0;
        }
    }
    // its bounds are those of the whole array
    type.lower = inner.lower;
    type.upper = inner.lower + elements * inner.extent();
    return type;
}

random_type random_types::resized(const random_type &inner) {
    random_type type = inner;
    type.lower = inner.lower + between(-20, 20) * between(0, 1);
    int64_t extent = 0;
    switch (below(4)) {
        case 0:
            extent = inner.extent() + between(1, 40);
            break;
        case 1:
            extent = between(-100, 300);
            break;
        case 2:
            extent = inner.extent() / 2;  // copies overlap or interleave
            break;
        default:
            extent = -inner.extent();
            break;
    }
    type.upper = type.lower + extent;
    type.text = "resized(" + std::to_string(type.lower) + "," + std::to_string(extent) + "," +
                inner.text + ")";
    return type;
}

random_type random_types::make(uint64_t depth) {
    if (depth == 0) {
        return basic();
    }
    const random_type inner = make(depth - 1);
    switch (below(10)) {
        case 0:
            return contiguous(inner);
        case 1:
            return vector(inner, false);
        case 2:
        case 3:
            return vector(inner, true);
        case 4:
            return indexed(inner, false, false);
        case 5:
            return indexed(inner, true, false);
        case 6:
            return indexed(inner, below(2) == 0, true);
        case 7:
            return structure(inner, depth);
        case 8:
            return subarray(inner);
        default:
            return resized(inner);
    }
}

}  // namespace cuda_nc::test
