#include "windows/int_layout.hpp"

#include <algorithm>
#include <utility>

namespace mpi_test {
namespace {

// A divisor of `number`, any of them.
int random_divisor(random_stream &random, int number) {
    std::vector<int> all;
    for (int one = 1; one <= number; ++one) {
        if (number % one == 0) {
            all.push_back(one);
        }
    }
    return all[random.next() % all.size()];
}

void make_contiguous(int number, int_layout *made) {
    for (int i = 0; i < number; ++i) {
        made->places.push_back(i);
    }
    made->count = number;
    MPI_Type_dup(MPI_INT, &made->type);
}

void make_rows(random_stream &random, int number, int_layout *made) {
    const int length = random_divisor(random, number);
    const int stride = length + static_cast<int>(random.between(1, 5));
    for (int i = 0; i < number; ++i) {
        made->places.push_back(i / length * stride + i % length);
    }
    MPI_Type_vector(number / length, length, stride, MPI_INT, &made->type);
}

// Elements that lie between each other: one column is one element of the type.
void make_columns(random_stream &random, int number, int_layout *made) {
    const int rows = random_divisor(random, number), columns = number / rows;
    const int width = columns + static_cast<int>(random.between(0, 3));
    for (int i = 0; i < number; ++i) {
        made->places.push_back(i % rows * width + i / rows);
    }
    MPI_Datatype column;
    MPI_Type_vector(rows, 1, width, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &made->type);
    MPI_Type_free(&column);
    made->count = columns;
}

void make_box(random_stream &random, int number, int_layout *made) {
    const int rows = random_divisor(random, number), columns = number / rows;
    const int sizes[] = {rows + 2, columns + static_cast<int>(random.between(1, 4))};
    const int parts[] = {rows, columns};
    const int starts[] = {1, static_cast<int>(random.between(0, sizes[1] - columns))};
    for (int i = 0; i < number; ++i) {
        made->places.push_back((i / columns + starts[0]) * sizes[1] + i % columns + starts[1]);
    }
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &made->type);
}

void make_blocks(random_stream &random, int number, int_layout *made) {
    std::vector<std::pair<int, int>> blocks;  // place, length
    for (int at = static_cast<int>(random.between(0, 4)), left = number; left != 0;) {
        const int length = static_cast<int>(random.between(1, std::min(left, 9)));
        blocks.push_back({at, length});
        at += length + static_cast<int>(random.between(0, 4));
        left -= length;
    }
    for (size_t i = blocks.size(); i > 1; --i) {
        std::swap(blocks[i - 1], blocks[random.next() % i]);
    }
    std::vector<int> places, lengths;
    for (const auto &one : blocks) {
        places.push_back(one.first);
        lengths.push_back(one.second);
        for (int i = 0; i < one.second; ++i) {
            made->places.push_back(one.first + i);
        }
    }
    MPI_Type_indexed(static_cast<int>(blocks.size()), lengths.data(), places.data(), MPI_INT,
                     &made->type);
}

}  // namespace

int_layout make_int_layout(random_stream &random, int number) {
    int_layout made;
    switch (random.next() % 5) {
        case 0:
            make_contiguous(number, &made);
            break;
        case 1:
            make_rows(random, number, &made);
            break;
        case 2:
            make_columns(random, number, &made);
            break;
        case 3:
            make_box(random, number, &made);
            break;
        default:
            make_blocks(random, number, &made);
            break;
    }
    MPI_Type_commit(&made.type);
    made.span = 1 + *std::max_element(made.places.begin(), made.places.end());
    return made;
}

void free_int_layout(int_layout *layout) {
    MPI_Type_free(&layout->type);
}

}  // namespace mpi_test
