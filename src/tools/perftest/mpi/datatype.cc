#include "tools/perftest/mpi/datatype.hpp"

#include <climits>
#include <string>
#include <vector>

#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {
namespace {

struct element {
    MPI_Datatype type;
    uint64_t size;
};

element element_of(const layout_view &view) {
    return view.align_log2 >= 3   ? element{MPI_DOUBLE, 8}
           : view.align_log2 == 2 ? element{MPI_FLOAT, 4}
                                  : element{MPI_BYTE, 1};
}

// One pass over the layout's list of blocks.
MPI_Datatype make_list(const layout &what) {
    const element unit = element_of(what.view());
    std::vector<int> lengths;
    std::vector<MPI_Aint> displacements;
    layout_cursor cursor(what, 0);
    for (uint64_t left = what.view().list_size; left > 0;) {
        const block one = cursor.next(left);
        lengths.push_back(to_mpi_count(one.length / unit.size));
        displacements.push_back(static_cast<MPI_Aint>(one.displacement));
        left -= one.length;
    }
    MPI_Datatype made;
    if (lengths.size() == 1 && displacements[0] == 0) {
        check_mpi(MPI_Type_contiguous(lengths[0], unit.type, &made), "MPI_Type_contiguous");
    } else {
        check_mpi(MPI_Type_create_hindexed(to_mpi_count(lengths.size()), lengths.data(),
                                           displacements.data(), unit.type, &made),
                  "MPI_Type_create_hindexed");
    }
    return made;
}

}  // namespace

void check_mpi(int status, const char *what) {
    if (status != MPI_SUCCESS) {
        throw run_error(std::string(what) + " failed: MPI error " + std::to_string(status));
    }
}

int to_mpi_count(uint64_t value) {
    if (value > INT_MAX) {
        throw run_error("MPI counts no more than 2^31 - 1 elements");
    }
    return static_cast<int>(value);
}

MPI_Datatype make_datatype(const layout &what) {
    MPI_Datatype made = make_list(what);
    for (unsigned d = 0; d < what.view().num_dims; ++d) {
        const layout_dim &dim = what.view().dims[d];
        MPI_Datatype inner = made;
        const int status = MPI_Type_create_hvector(to_mpi_count(dim.count), 1,
                                                   static_cast<MPI_Aint>(dim.stride), inner, &made);
        MPI_Type_free(&inner);
        check_mpi(status, "MPI_Type_create_hvector");
    }
    return made;
}

}  // namespace cuda_nc::tools
