#include "hooks/mpich/ranks.hpp"

#include <algorithm>
#include <vector>

#include "hooks/mpich/typed_memory.hpp"

namespace cuda_nc::hooks::local {

ranks::ranks(handle comm) {
    int is_between = 0;
    if (pmpi().Comm_rank(comm, &mine) != 0 || pmpi().Comm_size(comm, &own) != 0 ||
        pmpi().Comm_test_inter(comm, &is_between) != 0 ||
        (is_between != 0 && pmpi().Comm_remote_size(comm, &others) != 0)) {
        throw failure{comm, error_other};
    }
    between = is_between != 0;
    others = between ? others : own;
}

bool neighbours::count(handle comm) noexcept {
    int mine = 0, number = 0, weighted = 0;
    if (pmpi().Topo_test(comm, &kind_) != 0) {
        return false;
    }
    if (kind_ == cartesian && pmpi().Cartdim_get(comm, &number) == 0) {
        sources = destinations = 2 * number;
        return true;
    }
    if (kind_ == graph && pmpi().Comm_rank(comm, &mine) == 0 &&
        pmpi().Graph_neighbors_count(comm, mine, &number) == 0) {
        sources = destinations = number;
        return true;
    }
    return kind_ == distributed_graph &&
           pmpi().Dist_graph_neighbors_count(comm, &sources, &destinations, &weighted) == 0;
}

bool neighbours::has_self(handle comm) const {
    int mine = 0;
    if (pmpi().Comm_rank(comm, &mine) != 0) {
        return false;
    }
    std::vector<int> all(static_cast<size_t>(sources) + static_cast<size_t>(destinations));
    if (kind_ == cartesian) {
        for (int i = 0; 2 * i < sources; ++i) {
            int *two = &all[2 * static_cast<size_t>(i)];
            if (pmpi().Cart_shift(comm, i, 1, two, two + 1) != 0) {
                return false;
            }
        }
        all.resize(static_cast<size_t>(sources));
    } else if (kind_ == graph) {
        if (pmpi().Graph_neighbors(comm, mine, sources, all.data()) != 0) {
            return false;
        }
        all.resize(static_cast<size_t>(sources));
    } else {
        std::vector<int> weights(all.size() + 1);
        int *to = all.data() + sources;
        if (pmpi().Dist_graph_neighbors(comm, sources, all.data(), weights.data(), destinations, to,
                                        weights.data() + sources) != 0) {
            return false;
        }
    }
    return std::find(all.begin(), all.end(), mine) != all.end();
}

}  // namespace cuda_nc::hooks::local
