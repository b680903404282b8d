#include "bench/layout_catalogue.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <random>
#include <sstream>

#include "tools/perftest/layouts/tables.hpp"

namespace {

catalogue_entry finish(std::vector<span> spans, size_t extent,
                       std::function<MPI_Datatype()> make_type) {
    catalogue_entry entry;
    entry.spans = std::move(spans);
    entry.extent = extent;
    for (const span &one : entry.spans) {
        entry.payload += one.length;
    }
    entry.make_type = std::move(make_type);
    return entry;
}

catalogue_entry contiguous(size_t bytes) {
    return finish({{0, bytes}}, bytes, [bytes] {
        MPI_Datatype type;
        MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type);
        return type;
    });
}

// `count` blocks of `length` bytes, `stride` bytes apart; both in whole doubles.
catalogue_entry vector_of(size_t count, size_t length, size_t stride) {
    std::vector<span> spans;
    for (size_t i = 0; i < count; ++i) {
        spans.push_back({i * stride, length});
    }
    return finish(std::move(spans), count * stride, [count, length, stride] {
        MPI_Datatype type;
        MPI_Type_vector(static_cast<int>(count), static_cast<int>(length / 8),
                        static_cast<int>(stride / 8), MPI_DOUBLE, &type);
        return type;
    });
}

catalogue_entry triangle(size_t n) {
    std::vector<span> spans;
    for (size_t row = 0; row < n; ++row) {
        spans.push_back({row * n * 8, (row + 1) * 8});
    }
    return finish(std::move(spans), n * n * 8, [n] {
        std::vector<int> lengths(n), displacements(n);
        for (size_t row = 0; row < n; ++row) {
            lengths[row] = static_cast<int>(row + 1);
            displacements[row] = static_cast<int>(row * n);
        }
        MPI_Datatype type;
        MPI_Type_indexed(static_cast<int>(n), lengths.data(), displacements.data(), MPI_DOUBLE,
                         &type);
        return type;
    });
}

// An n x n matrix of doubles, column by column.
catalogue_entry transpose(size_t n) {
    std::vector<span> spans;
    for (size_t column = 0; column < n; ++column) {
        for (size_t row = 0; row < n; ++row) {
            spans.push_back({(row * n + column) * 8, 8});
        }
    }
    return finish(std::move(spans), n * n * 8, [n] {
        MPI_Datatype column, step, type;
        MPI_Type_vector(static_cast<int>(n), 1, static_cast<int>(n), MPI_DOUBLE, &column);
        MPI_Type_create_resized(column, 0, 8, &step);
        MPI_Type_contiguous(static_cast<int>(n), step, &type);
        MPI_Type_free(&column);
        MPI_Type_free(&step);
        return type;
    });
}

// C order, element of `width` bytes (4: float, 8: double).
catalogue_entry subarray(std::vector<int> sizes, std::vector<int> subsizes, std::vector<int> starts,
                         size_t width) {
    size_t dims = sizes.size(), total = width, rows = 1;
    for (size_t d = 0; d < dims; ++d) {
        total *= static_cast<size_t>(sizes[d]);
        rows *= d + 1 < dims ? static_cast<size_t>(subsizes[d]) : 1;
    }
    std::vector<span> spans;
    for (size_t row = 0; row < rows; ++row) {
        size_t left = row, stride = static_cast<size_t>(sizes[dims - 1]);
        size_t offset = static_cast<size_t>(starts[dims - 1]);
        for (size_t d = dims - 1; d-- > 0;) {
            size_t index = left % static_cast<size_t>(subsizes[d]);
            left /= static_cast<size_t>(subsizes[d]);
            offset += (index + static_cast<size_t>(starts[d])) * stride;
            stride *= static_cast<size_t>(sizes[d]);
        }
        spans.push_back({offset * width, static_cast<size_t>(subsizes[dims - 1]) * width});
    }
    return finish(std::move(spans), total, [=] {
        MPI_Datatype type;
        MPI_Type_create_subarray(static_cast<int>(dims), sizes.data(), subsizes.data(),
                                 starts.data(), MPI_ORDER_C, width == 4 ? MPI_FLOAT : MPI_DOUBLE,
                                 &type);
        return type;
    });
}

// {double, two ints, a char}, 24 bytes apart.
catalogue_entry structs(size_t count) {
    std::vector<span> spans;
    for (size_t i = 0; i < count; ++i) {
        spans.push_back({i * 24, 17});
    }
    return finish(std::move(spans), count * 24, [count] {
        int lengths[3] = {1, 2, 1};
        MPI_Aint displacements[3] = {0, 8, 16};
        MPI_Datatype members[3] = {MPI_DOUBLE, MPI_INT, MPI_CHAR}, one, padded, type;
        MPI_Type_create_struct(3, lengths, displacements, members, &one);
        MPI_Type_create_resized(one, 0, 24, &padded);
        MPI_Type_contiguous(static_cast<int>(count), padded, &type);
        MPI_Type_free(&one);
        MPI_Type_free(&padded);
        return type;
    });
}

// `count` blocks of `length` bytes in random order, as from an unstructured mesh: the permutation
// of the product's form "indexed" for this seed.
catalogue_entry random_blocks(size_t count, size_t length, uint64_t seed) {
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
    std::vector<span> spans;
    int words = static_cast<int>(length / 8);
    for (int &slot : order) {
        spans.push_back({static_cast<size_t>(slot) * 2 * length, length});
        slot *= 2 * words;
    }
    return finish(std::move(spans), 2 * count * length, [order, words] {
        MPI_Datatype type;
        MPI_Type_create_indexed_block(static_cast<int>(order.size()), words, order.data(),
                                      MPI_DOUBLE, &type);
        return type;
    });
}

std::vector<std::string> parts_of(const std::string &text, char separator) {
    std::vector<std::string> parts;
    std::istringstream from(text);
    for (std::string one; std::getline(from, one, separator);) {
        parts.push_back(one);
    }
    return parts;
}

// "64", "4K", "16M".
size_t number_of(const std::string &text) {
    char *end = nullptr;
    const size_t number = std::strtoull(text.c_str(), &end, 10);
    return *end == 'K' ? number << 10 : *end == 'M' ? number << 20 : number;
}

std::vector<int> numbers_of(const std::string &text) {
    std::vector<int> numbers;
    for (const std::string &one : parts_of(text, 'x')) {
        numbers.push_back(static_cast<int>(number_of(one)));
    }
    return numbers;
}

// The sides of a box that cover `factor` times as many bytes. What is only a few elements wide
// stays so.
struct box {
    std::vector<int> sizes, subsizes, starts;
};

box scaled(box all, double factor) {
    constexpr int few = 3;
    const auto wide = std::count_if(all.subsizes.begin(), all.subsizes.end(),
                                    [](int side) { return side > few; });
    const double each = std::pow(factor, 1.0 / static_cast<double>(std::max<long>(wide, 1)));
    for (size_t d = 0; d < all.sizes.size(); ++d) {
        if (all.subsizes[d] > few) {
            auto scale = [&](int value) { return static_cast<int>(std::lround(value * each)); };
            all.subsizes[d] = std::max(scale(all.subsizes[d]), 1);
            all.starts[d] = scale(all.starts[d]);
            all.sizes[d] = std::max(scale(all.sizes[d]), all.starts[d] + all.subsizes[d]);
        }
    }
    return all;
}

// Reads the forms that the demo's layouts have, with the parameters that they have there, but for
// `factor` times as many bytes.
catalogue_entry entry_of(const std::string &text, double factor) {
    const size_t colon = text.find(':');
    const std::string form = text.substr(0, colon);
    const std::vector<std::string> given = parts_of(text.substr(colon + 1), ',');
    auto number = [&](size_t i) { return number_of(given.at(i)); };
    auto times = [&](size_t i, double by) {
        return static_cast<size_t>(
            std::max<long>(std::lround(static_cast<double>(number(i)) * by), 1));
    };
    if (form == "vector" && number(0) == 1) {
        return contiguous(times(1, factor));
    }
    if (form == "vector") {
        return vector_of(times(0, factor), number(1), number(2));
    }
    if (form == "triangle") {
        return triangle(times(0, std::sqrt(factor)));
    }
    if (form == "transpose") {
        return transpose(times(0, std::sqrt(factor)));
    }
    if (form == "subarray") {
        const box all = scaled(
            {numbers_of(given.at(1)), numbers_of(given.at(2)), numbers_of(given.at(3))}, factor);
        return subarray(all.sizes, all.subsizes, all.starts, number(0));
    }
    if (form == "struct") {
        return structs(times(1, factor));
    }
    return random_blocks(times(0, factor), number(1), number(4));
}

}  // namespace

std::vector<std::string> catalogue_names() {
    std::vector<std::string> names;
    for (const auto &row : cuda_nc::tools::demo_layouts) {
        names.push_back(row.name);
    }
    return names;
}

catalogue_entry make_entry(const std::string &name, size_t bytes) {
    for (const auto &row : cuda_nc::tools::demo_layouts) {
        if (row.name == name) {
            catalogue_entry usual = entry_of(row.text, 1);
            return bytes == 0 ? usual
                              : entry_of(row.text, static_cast<double>(bytes) /
                                                       static_cast<double>(usual.payload));
        }
    }
    return {};
}
