// Subarrays and distributed arrays: the map is made by visiting every element of the whole array in
// its storage order and asking whether it belongs to the part. Slow and plainly right.
#include <functional>

#include "made_type.hpp"

namespace mpi_test {

made_type finish_type(MPI_Datatype, type_map, std::string, bounds_are);

namespace {

type_map select(const std::vector<int> &sizes, bool fortran, const type_map &old,
                const std::function<bool(size_t dimension, int index)> &belongs) {
    size_t dimensions = sizes.size();
    int64_t total = 1;
    for (int size : sizes) {
        total *= size;
    }
    type_map map;
    for (int64_t linear = 0; linear < total; ++linear) {
        int64_t rest = linear;
        bool inside = true;
        for (size_t i = 0; i < dimensions; ++i) {
            size_t dimension = fortran ? i : dimensions - 1 - i;  // fastest first
            inside = inside && belongs(dimension, static_cast<int>(rest % sizes[dimension]));
            rest /= sizes[dimension];
        }
        if (inside) {
            map.add(old, linear * old.extent());
        }
    }
    map.resize(0, total * old.extent());
    return map;
}

}  // namespace

made_type subarray(const std::vector<dimension> &dimensions, bool fortran, const made_type &old) {
    std::vector<int> sizes, parts, starts;
    std::string text;
    for (const dimension &d : dimensions) {
        sizes.push_back(d.size);
        parts.push_back(d.part);
        starts.push_back(d.start);
        text += std::to_string(d.part) + "/" + std::to_string(d.size) + "+" +
                std::to_string(d.start) + ",";
    }
    MPI_Datatype handle;
    MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), parts.data(),
                             starts.data(), fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C, old.handle(),
                             &handle);
    type_map map = select(sizes, fortran, old.map(), [&](size_t d, int index) {
        return index >= starts[d] && index < starts[d] + parts[d];
    });
    return finish_type(handle, std::move(map),
                       std::string("subarray_") + (fortran ? "f(" : "c(") + text + old.text() + ")",
                       known);
}

made_type darray(int rank, const std::vector<distribution> &dimensions, bool fortran,
                 const made_type &old) {
    std::vector<int> sizes, kinds, arguments, processes;
    std::string text = std::to_string(rank) + ",";
    int total = 1;
    for (const distribution &d : dimensions) {
        sizes.push_back(d.size);
        kinds.push_back(d.kind);
        arguments.push_back(d.argument);
        processes.push_back(d.processes);
        total *= d.processes;
        text += std::to_string(d.size) +
                (d.kind == MPI_DISTRIBUTE_BLOCK    ? "block"
                 : d.kind == MPI_DISTRIBUTE_CYCLIC ? "cyclic"
                                                   : "none") +
                (d.argument == MPI_DISTRIBUTE_DFLT_DARG ? "" : std::to_string(d.argument)) + "/" +
                std::to_string(d.processes) + ",";
    }
    MPI_Datatype handle;
    // Open MPI 4.1 refuses some distributions, e.g. of types without bytes: there the type stays.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int error = MPI_Type_create_darray(
        total, rank, static_cast<int>(sizes.size()), sizes.data(), kinds.data(), arguments.data(),
        processes.data(), fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C, old.handle(), &handle);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (error != MPI_SUCCESS) {
        return duplicate(old);
    }
    // the process grid is row-major whatever the order of the array
    std::vector<int> coordinates(sizes.size());
    int rest = rank;
    for (size_t i = sizes.size(); i-- > 0;) {
        coordinates[i] = rest % processes[i];
        rest /= processes[i];
    }
    type_map map = select(sizes, fortran, old.map(), [&](size_t d, int index) {
        int block = arguments[d];
        if (kinds[d] == MPI_DISTRIBUTE_NONE) {
            return true;
        }
        if (block == MPI_DISTRIBUTE_DFLT_DARG) {
            block = kinds[d] == MPI_DISTRIBUTE_CYCLIC
                        ? 1
                        : (sizes[d] + processes[d] - 1) / processes[d];
        }
        return (index / block) % processes[d] == coordinates[d];
    });
    return finish_type(handle, std::move(map),
                       std::string("darray_") + (fortran ? "f(" : "c(") + text + old.text() + ")",
                       known);
}

}  // namespace mpi_test
