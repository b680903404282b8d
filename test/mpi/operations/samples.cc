#include "operations/samples.hpp"

#include <algorithm>
#include <cmath>

#include "support/random.hpp"

namespace mpi_test {
namespace {

int times(int64_t bytes, int64_t element) {
    return static_cast<int>(std::max<int64_t>(2, bytes / element));
}

// A transpose: the packed bytes are the matrix column by column.
made_type transposed(int64_t bytes) {
    int n = std::max(2, static_cast<int>(std::sqrt(static_cast<double>(bytes) / 4)));
    return hvector(n, 1, 4, vector(n, 1, n, basic("INT")));
}

made_type scattered(int64_t bytes) {
    random_stream random{4711};
    std::vector<placement> blocks;
    int64_t at = 0;
    for (int i = times(bytes, 12); i > 0; --i) {
        int length = static_cast<int>(random.between(1, 5));
        blocks.push_back({length, at});
        at += length + random.between(1, 4);
    }
    for (size_t i = blocks.size(); i > 1; --i) {
        std::swap(blocks[i - 1], blocks[random.next() % i]);
    }
    return indexed(blocks, basic("INT"));
}

made_type inner_box(int64_t bytes) {
    int n = std::max(2, static_cast<int>(std::cbrt(static_cast<double>(bytes) / 8)));
    return subarray({{n + 2, n, 1}, {n + 3, n, 2}, {2 * n, n, n / 2}}, false, basic("DOUBLE"));
}

made_type backwards(int64_t bytes) {
    std::vector<int64_t> displacements;
    for (int i = times(bytes, 12); i > 0; --i) {
        displacements.push_back(20 * i + i % 3 * 4);
    }
    return hindexed_block(3, displacements, basic("FLOAT"));
}

made_type structs(int64_t bytes) {
    made_type one =
        structure({{{1, 0}, &basic("DOUBLE")}, {{2, 8}, &basic("INT")}, {{3, 17}, &basic("CHAR")}});
    return contiguous(times(bytes, 19), resized(-4, 40, one));
}

made_type shaped(int shape, int64_t bytes) {
    switch (shape) {
        case 0:
            return vector(times(bytes, 8), 1, 2, basic("DOUBLE"));
        case 1:
            return hvector(times(bytes, 3), 3, 7, basic("BYTE"));
        case 2:
            return structs(bytes);
        case 3:
            return transposed(bytes);
        case 4:
            return scattered(bytes);
        case 5:
            return inner_box(bytes);
        case 6:
            return backwards(bytes);
        default:
            return hvector(times(bytes, 40), 5, -72, basic("LONG"));
    }
}

std::vector<sample> make_samples() {
    std::vector<sample> made;
    made.push_back({sample_type(0, 64), 0});
    for (int64_t bytes : {64, 9000, 300000}) {
        for (int shape = 0; shape < num_shapes; ++shape) {
            made.push_back({sample_type(shape, bytes), 1 + shape % 3});
        }
    }
    made.push_back({sample_type(0, 3 << 20), 1});
    made.push_back({sample_type(4, 2 << 20), 1});
    return made;
}

std::vector<sample> make_few_samples() {
    std::vector<sample> made;
    made.push_back({sample_type(1, 50), 2});
    made.push_back({sample_type(4, 9000), 1});
    made.push_back({sample_type(2, 100), 50});
    made.push_back({sample_type(3, 200000), 1});
    return made;
}

}  // namespace

made_type sample_type(int shape, int64_t bytes) {
    made_type made = shaped(shape, bytes);
    made.commit();
    return made;
}

const std::vector<sample> &samples() {
    static const auto *made = new auto(make_samples());  // types may not outlive MPI
    return *made;
}

const std::vector<sample> &few_samples() {
    static const auto *made = new auto(make_few_samples());
    return *made;
}

}  // namespace mpi_test
