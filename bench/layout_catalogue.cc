#include "bench/layout_catalogue.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace {

using maker = std::function<catalogue_entry()>;

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

// Every second block of `length` bytes, `bytes` in all.
catalogue_entry vector_of(size_t bytes, size_t length) {
    size_t count = bytes / length;
    std::vector<span> spans;
    for (size_t i = 0; i < count; ++i) {
        spans.push_back({2 * i * length, length});
    }
    return finish(std::move(spans), 2 * bytes, [count, length] {
        MPI_Datatype type;
        int words = static_cast<int>(length / 8);
        MPI_Type_vector(static_cast<int>(count), words, 2 * words, MPI_DOUBLE, &type);
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

// `count` blocks of `length` bytes in random order, as from an unstructured mesh.
catalogue_entry random_blocks(size_t count, size_t length) {
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(12345));
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

const std::vector<std::pair<std::string, maker>> &catalogue() {
    constexpr size_t size = 16u << 20;
    constexpr int n = 256;
    static const std::vector<std::pair<std::string, maker>> all = {
        {"contiguous", [] { return contiguous(size); }},
        {"vector-8B", [] { return vector_of(size, 8); }},
        {"vector-64B", [] { return vector_of(size, 64); }},
        {"vector-256B", [] { return vector_of(size, 256); }},
        {"vector-4KiB", [] { return vector_of(size, 4096); }},
        {"sub-matrix",
         [] {
             return subarray({2048, 2048}, {1448, 1448}, {300, 300}, 8);
         }},
        {"triangle", [] { return triangle(2048); }},
        {"transpose", [] { return transpose(1448); }},
        {"face-x",
         [] {
             return subarray({n, n, n}, {n, n, 3}, {0, 0, 3}, 8);
         }},
        {"face-y",
         [] {
             return subarray({n, n, n}, {n, 3, n}, {0, 3, 0}, 8);
         }},
        {"face-z",
         [] {
             return subarray({n, n, n}, {3, n, n}, {3, 0, 0}, 8);
         }},
        {"subarray-4D",
         [] {
             return subarray({128, 64, 64, 128}, {64, 32, 32, 64}, {32, 16, 16, 32}, 4);
         }},
        {"struct", [] { return structs(986895); }},
        {"random-8B", [] { return random_blocks(1u << 18, 8); }},
        {"random-64B", [] { return random_blocks(1u << 17, 64); }},
    };
    return all;
}

}  // namespace

std::vector<std::string> catalogue_names() {
    std::vector<std::string> names;
    for (const auto &entry : catalogue()) {
        names.push_back(entry.first);
    }
    return names;
}

catalogue_entry make_entry(const std::string &name) {
    for (const auto &entry : catalogue()) {
        if (entry.first == name) {
            return entry.second();
        }
    }
    return {};
}
