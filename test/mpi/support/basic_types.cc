#include <stdexcept>

#include "made_type.hpp"

namespace mpi_test {
namespace {

template <typename value>
made_type simple(MPI_Datatype handle, const char *name) {
    return {handle, type_map({{0, sizeof(value), false}}, sizeof(value)), name};
}

// Ten bytes of value and six of padding on this platform.
std::vector<byte_run> long_double_runs(int64_t at) {
    static_assert(sizeof(long double) == 16, "x86-64");
    return {{at, 10, false}, {at + 10, 6, true}};
}

template <typename first>
made_type pair(MPI_Datatype handle, const char *name) {
    struct layout {
        first value;
        int index;
    };
    auto offset = static_cast<int64_t>(offsetof(layout, index));
    std::vector<byte_run> runs = {{0, sizeof(first), false}};
    if (offset == static_cast<int64_t>(sizeof(first))) {
        runs[0].length += 4;
    } else {
        runs.push_back({offset, 4, false});
    }
    return {handle, type_map(std::move(runs), sizeof(layout)), name};
}

std::vector<made_type> make_basic_types() {
    std::vector<made_type> types;
    types.push_back(simple<char>(MPI_CHAR, "CHAR"));
    types.push_back(simple<char>(MPI_BYTE, "BYTE"));
    types.push_back(simple<char>(MPI_SIGNED_CHAR, "SIGNED_CHAR"));
    types.push_back(simple<bool>(MPI_C_BOOL, "C_BOOL"));
    types.push_back(simple<short>(MPI_SHORT, "SHORT"));
    types.push_back(simple<int16_t>(MPI_UINT16_T, "UINT16_T"));
    types.push_back(simple<int>(MPI_INT, "INT"));
    types.push_back(simple<float>(MPI_FLOAT, "FLOAT"));
    types.push_back(simple<wchar_t>(MPI_WCHAR, "WCHAR"));
    types.push_back(simple<long>(MPI_LONG, "LONG"));
    types.push_back(simple<double>(MPI_DOUBLE, "DOUBLE"));
    types.push_back(simple<uint64_t>(MPI_UINT64_T, "UINT64_T"));
    types.push_back(simple<MPI_Aint>(MPI_AINT, "AINT"));
    types.push_back(simple<MPI_Count>(MPI_COUNT, "COUNT"));
    types.push_back(simple<float[2]>(MPI_C_FLOAT_COMPLEX, "C_FLOAT_COMPLEX"));
    types.push_back(simple<double[2]>(MPI_C_DOUBLE_COMPLEX, "C_DOUBLE_COMPLEX"));
    types.push_back(simple<int[2]>(MPI_2INT, "2INT"));
    types.push_back(pair<float>(MPI_FLOAT_INT, "FLOAT_INT"));
    types.push_back(pair<double>(MPI_DOUBLE_INT, "DOUBLE_INT"));
    types.push_back(pair<long>(MPI_LONG_INT, "LONG_INT"));
    types.push_back(pair<short>(MPI_SHORT_INT, "SHORT_INT"));
    types.emplace_back(MPI_LONG_DOUBLE, type_map(long_double_runs(0), 16), "LONG_DOUBLE");
    std::vector<byte_run> runs = long_double_runs(0);
    runs.push_back({16, 4, false});
    types.emplace_back(MPI_LONG_DOUBLE_INT, type_map(std::move(runs), 32), "LONG_DOUBLE_INT");
    return types;
}

}  // namespace

const std::vector<made_type> &basic_types() {
    static const std::vector<made_type> types = make_basic_types();
    return types;
}

const made_type &basic(const std::string &name) {
    for (const made_type &type : basic_types()) {
        if (type.text() == name) {
            return type;
        }
    }
    throw std::invalid_argument(name);
}

}  // namespace mpi_test
