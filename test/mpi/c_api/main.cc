// Layouts that the C API reads from random MPI datatypes, against their type maps: bounds and
// packed bytes, of several elements too.
//
// usage: c-api [--types N] [--seed N]
#include <cuda_nc/cuda_nc.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../support/random_type.hpp"

namespace {

using namespace mpi_test;

long failures = 0;

void fail(const made_type &type, int64_t count, const std::string &what) {
    std::printf("FAIL %lld of %s: %s (%s)\n", static_cast<long long>(count), type.text().c_str(),
                what.c_str(), cuda_nc_last_error());
    ++failures;
}

cuda_nc_layout_t read_type(const made_type &type, int64_t count) {
    MPI_Datatype handle = type.handle();
    cuda_nc_layout_t layout = nullptr;
    if (cuda_nc_layout_create_mpi(&handle, sizeof(handle), count, &layout) != UCS_OK) {
        fail(type, count, "is refused");
    }
    return layout;
}

void compare(const made_type &type, int64_t count, cuda_nc_layout_t layout) {
    const type_map map = repeated(type.map(), count);
    cuda_nc_layout_attr_t attr = {};
    attr.field_mask =
        CUDA_NC_LAYOUT_ATTR_PACKED_SIZE | CUDA_NC_LAYOUT_ATTR_EXTENT | CUDA_NC_LAYOUT_ATTR_BOUNDS;
    cuda_nc_layout_query(layout, &attr);
    if (attr.packed_size != static_cast<uint64_t>(map.size()) ||
        attr.extent != type.map().extent() || attr.lower_bound != map.true_lb() ||
        attr.upper_bound != map.true_ub()) {
        fail(type, count,
             "has " + std::to_string(attr.packed_size) + " bytes from " +
                 std::to_string(attr.lower_bound) + " to " + std::to_string(attr.upper_bound) +
                 ", extent " + std::to_string(attr.extent));
        return;
    }
    std::vector<char> memory(static_cast<size_t>(map.true_ub() - map.true_lb()) + 1);
    for (size_t i = 0; i < memory.size(); ++i) {
        memory[i] = static_cast<char>(i * 2654435761u >> 13);
    }
    const char *base = memory.data() - map.true_lb();
    std::vector<char> packed(static_cast<size_t>(map.size()) + 1);
    if (map.size() != 0 && cuda_nc_pack(layout, base, packed.data(), nullptr) != UCS_OK) {
        fail(type, count, "is not packed");
        return;
    }
    packed.pop_back();
    if (packed != map.pack(base)) {
        fail(type, count, "is packed wrongly");
    }
}

long number_after(int argc, char **argv, const std::string &name, long value) {
    for (int i = 1; i + 1 < argc; ++i) {
        value = argv[i] == name ? std::atol(argv[i + 1]) : value;
    }
    return value;
}

}  // namespace

int main(int argc, char **argv) {
    const int nothing = 0;
    cuda_nc_layout_t none = nullptr;
    if (cuda_nc_layout_create_mpi(&nothing, sizeof(MPI_Datatype), 1, &none) !=
        UCS_ERR_UNSUPPORTED) {
        std::printf("FAIL before MPI_Init a datatype is read\n");
        ++failures;
    }
    MPI_Init(&argc, &argv);
    const long types = number_after(argc, argv, "--types", 500);
    random_stream random({static_cast<uint64_t>(number_after(argc, argv, "--seed", 1))});
    for (long i = 0; i < types && failures < 10; ++i) {
        made_type type = random_type(random, {});
        const int64_t count = i % 3 == 0 ? 3 : i % 7 == 0 ? 0 : 1;
        cuda_nc_layout_t layout = read_type(type, count);
        type.release();  // the layout stays
        if (layout != nullptr) {
            compare(type, count, layout);
        }
        cuda_nc_layout_destroy(layout);
    }
    MPI_Finalize();
    std::printf("%s c_api %ld types\n", failures == 0 ? "PASS" : "FAIL", types);
    return failures != 0;
}
