#include "ucs/layout/layout_spec.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>

#include "ucs/base/bits.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/base/text.hpp"

namespace cuda_nc {
namespace {

constexpr uint64_t max_blocks = uint64_t(1) << 28;  // most blocks that a text may list

// Thrown with one sentence for the user.
struct bad_text : std::runtime_error {
    using std::runtime_error::runtime_error;
};

uint64_t to_size(const std::string &text) {
    size_t value;
    if (text == "inf" || !parse_size(text, &value)) {
        throw bad_text("'" + text + "' is not a size");
    }
    return value;
}

int64_t to_offset(const std::string &text) {
    bool negative = !text.empty() && text[0] == '-';
    uint64_t value = to_size(negative ? text.substr(1) : text);
    if (value > uint64_t(INT64_MAX)) {
        throw bad_text("'" + text + "' is too large");
    }
    return negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
}

std::vector<uint64_t> to_sizes(const std::string &text) {
    std::vector<uint64_t> sizes;
    for (const std::string &one : split(text, 'x')) {
        sizes.push_back(to_size(one));
    }
    return sizes;
}

uint64_t checked_product(uint64_t left, uint64_t right) {
    uint64_t product;
    if (__builtin_mul_overflow(left, right, &product) || product > uint64_t(INT64_MAX)) {
        throw bad_text("the layout exceeds 2^63 - 1 bytes");
    }
    return product;
}

layout_ref one_block(int64_t displacement, uint64_t length) {
    layout_builder builder;
    builder.append(displacement, length);
    return builder.finish();
}

layout_ref checked_repeat(const layout_ref &what, uint64_t count, int64_t extent) {
    layout_ref result = what != nullptr ? what->repeat(count, extent) : nullptr;
    if (result == nullptr) {
        throw bad_text("the layout exceeds 2^63 - 1 bytes");
    }
    return result;
}

using arguments = std::vector<std::string>;

layout_ref make_vector(const arguments &given) {
    return checked_repeat(one_block(0, to_size(given[1])), to_size(given[0]), to_offset(given[2]));
}

layout_ref make_subarray(const arguments &given) {
    uint64_t pitch = to_size(given[0]);
    std::vector<uint64_t> sizes = to_sizes(given[1]), subsizes = to_sizes(given[2]),
                          starts = to_sizes(given[3]);
    if (subsizes.size() != sizes.size() || starts.size() != sizes.size()) {
        throw bad_text("sizes, subsizes and starts of a subarray differ in number");
    }
    int64_t first = 0;
    for (size_t dim = sizes.size(); dim-- > 0;) {
        if (starts[dim] > sizes[dim] || subsizes[dim] > sizes[dim] - starts[dim]) {
            throw bad_text("a subarray exceeds its array");
        }
        first += static_cast<int64_t>(checked_product(starts[dim], pitch));
        pitch = checked_product(pitch, sizes[dim]);
    }
    pitch = to_size(given[0]);
    layout_ref what = one_block(first, pitch);
    for (size_t dim = sizes.size(); dim-- > 0;) {
        what = checked_repeat(what, subsizes[dim], static_cast<int64_t>(pitch));
        pitch *= sizes[dim];
    }
    return what;
}

layout_ref make_indexed(const arguments &given) {
    uint64_t count = to_size(given[0]), least = to_size(given[1]), most = to_size(given[2]),
             align = to_size(given[3]);
    if (count > max_blocks || least > most || align == 0 || align > INT64_MAX) {
        throw bad_text("indexed wants at most 2^28 blocks, MIN <= MAX, and ALIGN of 1 to 2^63 - 1");
    }
    uint64_t slot = round_up(checked_product(2, most), align);
    checked_product(slot, count);
    std::mt19937_64 random(to_size(given[4]));
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    layout_builder builder;
    for (uint32_t place : order) {
        uint64_t units = (most - least) / align;
        builder.append(static_cast<int64_t>(place * slot), least + random() % (units + 1) * align);
    }
    return builder.finish();
}

layout_ref make_triangle(const arguments &given) {
    uint64_t n = to_size(given[0]), element = to_size(given[1]);
    if (n > max_blocks) {
        throw bad_text("triangle wants at most 2^28 rows");
    }
    checked_product(checked_product(n, n), element);
    layout_builder builder;
    for (uint64_t row = 0; row < n; ++row) {
        builder.append(static_cast<int64_t>(row * n * element), (row + 1) * element);
    }
    return builder.finish();
}

layout_ref make_transpose(const arguments &given) {
    uint64_t n = to_size(given[0]), element = to_size(given[1]);
    uint64_t row = checked_product(n, element);
    layout_ref column = checked_repeat(one_block(0, element), n, static_cast<int64_t>(row));
    return checked_repeat(column, n, static_cast<int64_t>(element));
}

layout_ref make_struct(const arguments &given) {
    layout_builder builder;
    for (size_t i = 2; i < given.size(); ++i) {
        std::vector<std::string> member = split(given[i], ':');
        if (member.size() != 2) {
            throw bad_text("'" + given[i] + "' is not displacement:length");
        }
        builder.append(to_offset(member[0]), to_size(member[1]));
    }
    return checked_repeat(builder.finish(), to_size(given[1]), to_offset(given[0]));
}

layout_ref make_nest(const arguments &given) {
    if (given.size() % 2 == 0) {
        throw bad_text("nest wants a stride behind each count");
    }
    layout_ref what = one_block(0, to_size(given[0]));
    for (size_t i = 1; i < given.size(); i += 2) {
        what = checked_repeat(what, to_size(given[i]), to_offset(given[i + 1]));
    }
    return what;
}

layout_ref parse(const std::string &text);

layout_ref make_parts(const arguments &given) {
    layout_builder builder;
    uint64_t listed = 0;
    for (const std::string &part : split(given[0], ';')) {
        const size_t equals = part.find('=');
        if (equals == std::string::npos) {
            throw bad_text("'" + part + "' is not displacement=layout");
        }
        const int64_t displacement = to_offset(part.substr(0, equals));
        const layout_ref what = parse(part.substr(equals + 1));
        if (what->total_blocks() > max_blocks - listed) {
            throw bad_text("parts wants at most 2^28 blocks");
        }
        listed += what->total_blocks();
        layout_cursor blocks(*what, 0);
        for (block one = blocks.next(UINT64_MAX); one.length != 0; one = blocks.next(UINT64_MAX)) {
            int64_t moved;
            if (__builtin_add_overflow(one.displacement, displacement, &moved)) {
                throw bad_text("the layout exceeds 2^63 - 1 bytes");
            }
            builder.append(moved, one.length);
        }
    }
    return builder.finish();
}

layout_ref make_blocks(const arguments &given) {
    std::ifstream file(given[0]);
    if (!file) {
        throw bad_text("the file " + given[0] + " cannot be read");
    }
    layout_builder builder;
    std::string displacement, length;
    while (file >> displacement) {
        if (!(file >> length)) {
            throw bad_text("the file " + given[0] + " ends in the middle of a block");
        }
        builder.append(to_offset(displacement), to_size(length));
    }
    if (file.bad()) {
        throw bad_text("the file " + given[0] + " cannot be read");
    }
    return builder.finish();
}

struct form {
    const char *name, *wanted;
    size_t min_arguments, max_arguments;
    layout_ref (*make)(const arguments &);
    const char *help;
};

// clang-format off
const form forms[] = {
    {"vector", "COUNT,BLOCK,STRIDE", 3, 3, make_vector,
     "COUNT blocks of BLOCK bytes, STRIDE bytes from one's start to the next's"},
    {"subarray", "ELEM,SIZES,SUBSIZES,STARTS", 4, 4, make_subarray,
     "part of an array of ELEM bytes an element, in C order; the three in elements, joined by x: "
     "subarray:8,100x200,10x20,0x5"},
    {"indexed", "COUNT,MIN,MAX,ALIGN,SEED", 5, 5, make_indexed,
     "COUNT blocks of MIN to MAX bytes, in steps of ALIGN bytes, in random order at multiples of "
     "ALIGN; equal seeds, equal layouts"},
    {"triangle", "N,ELEM", 2, 2, make_triangle,
     "lower triangle of an N x N matrix of ELEM bytes an element, row by row"},
    {"transpose", "N,ELEM", 2, 2, make_transpose,
     "an N x N matrix of ELEM bytes an element, read by columns"},
    {"struct", "EXTENT,COUNT,D:L,...", 3, SIZE_MAX, make_struct,
     "blocks of L bytes at D bytes, and that COUNT times, EXTENT bytes apart"},
    {"nest", "BLOCK,COUNT,STRIDE,...", 3, SIZE_MAX, make_nest,
     "BLOCK bytes COUNT times, STRIDE bytes apart, that again by the next pair, and so on: the "
     "first pair varies fastest"},
    {"parts", "D=LAYOUT;...", 1, 1, make_parts,
     "layouts one after the other, each moved by D bytes"},
    {"blocks", "FILE", 1, 1, make_blocks,
     "a file with a displacement and a length in bytes for each block, separated by blanks or "
     "lines"},
};
// clang-format on

layout_ref parse(const std::string &text) {
    size_t colon = std::min(text.find(':'), text.size());
    std::string name = text.substr(0, colon);
    std::string given_text = colon < text.size() ? text.substr(colon + 1) : "";
    std::string names;
    for (const form &one : forms) {
        if (name != one.name) {
            names += std::string(names.empty() ? "" : ", ") + one.name;
            continue;
        }
        arguments given =
            name == "blocks" || name == "parts" ? arguments{given_text} : split(given_text, ',');
        if (given.size() < one.min_arguments || given.size() > one.max_arguments) {
            throw bad_text("'" + text + "' has the wrong number of arguments: it is " + one.name +
                           ":" + one.wanted);
        }
        layout_ref what = one.make(given);
        if (what == nullptr) {
            throw bad_text("the layout exceeds 2^63 - 1 bytes");
        }
        return what;
    }
    throw bad_text("'" + name + "' is not a layout; there are " + names);
}

}  // namespace

layout_ref parse_layout(const std::string &text, std::string *error_p) try {
    return parse(text);
} catch (const bad_text &wrong) {
    *error_p = wrong.what();
    return nullptr;
} catch (const std::bad_alloc &) {
    *error_p = "no memory for the layout";
    return nullptr;
}

std::string layout_forms() {
    std::string text =
        "Layouts as text; their bytes are packed in the order of the blocks. Numbers take K, M and "
        "G (powers of 1024), displacements and strides may be negative:\n";
    for (const form &one : forms) {
        text += std::string("  ") + one.name + ":" + one.wanted + "\n      " + one.help + "\n";
    }
    return text;
}

}  // namespace cuda_nc
