// A 3-D halo exchange with six neighbours, by MPI_Type_create_subarray.
//
//     mpirun -np 4 ./halo [host|cuda|sim]
//
// Each rank owns a box of a periodic grid, with a halo around it. Each face of the halo is received
// straight from the boundary of the neighbour that owns it. The halo's edges and corners are not
// exchanged. MPI's errors end the job, which is MPI's default.
#include <mpi.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "memory.h"

namespace {

constexpr int width = 2, box = 48, whole = box + 2 * width;  // elements in each dimension
constexpr int64_t untouched = -1;
using place = std::array<int, 3>;

// A face of the box or of its halo, across `dimension`, from `start` on in that dimension.
class face {
  public:
    face(int dimension, int start) {
        const place all = {whole, whole, whole};
        place size = {box, box, box}, from = {width, width, width};
        size[dimension] = width;
        from[dimension] = start;
        MPI_Type_create_subarray(3, all.data(), size.data(), from.data(), MPI_ORDER_C, MPI_INT64_T,
                                 &type_);
        MPI_Type_commit(&type_);
    }
    face(face &&other) noexcept : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)) {}
    ~face() {
        if (type_ != MPI_DATATYPE_NULL) {
            MPI_Type_free(&type_);
        }
    }
    MPI_Datatype type() const { return type_; }

  private:
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

struct grid {
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0;
    place ranks = {}, own = {};  // in each dimension

    grid() {
        int count = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &count);
        MPI_Dims_create(count, 3, ranks.data());
        const place periodic = {1, 1, 1};
        MPI_Cart_create(MPI_COMM_WORLD, 3, ranks.data(), periodic.data(), 0, &comm);
        MPI_Comm_rank(comm, &rank);
        MPI_Cart_coords(comm, rank, 3, own.data());
    }

    // What the owner of a place of our box or its halo has there: its number in the whole grid.
    int64_t owned(const place &at) const {
        int64_t number = 0;
        for (int d = 0; d < 3; ++d) {
            const int extent = ranks[d] * box;
            number = number * extent + (own[d] * box + at[d] - width + extent) % extent;
        }
        return number;
    }
};

// Our boundary goes to `destination`, and the boundary of `source` comes into our halo.
struct shift {
    face boundary, halo;
    int destination, source;
};

std::vector<shift> make_shifts(const grid &all) {
    std::vector<shift> six;
    for (int d = 0; d < 3; ++d) {
        int low = 0, high = 0;
        MPI_Cart_shift(all.comm, d, 1, &low, &high);
        six.push_back({face(d, box), face(d, 0), high, low});
        six.push_back({face(d, width), face(d, box + width), low, high});
    }
    return six;
}

// All faces at once. The tag tells the shifts apart: one neighbour may be on several sides.
void exchange(const grid &all, const std::vector<shift> &shifts, int64_t *data) {
    std::vector<MPI_Request> requests(2 * shifts.size());
    MPI_Request *next = requests.data();
    int tag = 0;
    for (const shift &one : shifts) {
        MPI_Irecv(data, 1, one.halo.type(), one.source, tag, all.comm, next++);
        MPI_Isend(data, 1, one.boundary.type(), one.destination, tag++, all.comm, next++);
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

// Calls `action` with each place, its index, and in how many dimensions it lies in the halo.
template <typename F>
void for_each_place(F &&action) {
    const auto outside = [](int i) { return i < width || i >= box + width ? 1 : 0; };
    size_t index = 0;
    for (int x = 0; x < whole; ++x) {
        for (int y = 0; y < whole; ++y) {
            for (int z = 0; z < whole; ++z) {
                action(place{x, y, z}, index++, outside(x) + outside(y) + outside(z));
            }
        }
    }
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    grid all;
    const memory *kind = memory_named(argc > 1 ? argv[1] : "host");
    kind->choose_gpu(all.rank);

    std::vector<int64_t> on_host(size_t{whole} * whole * whole);
    for_each_place([&](const place &at, size_t index, int halo) {
        on_host[index] = halo == 0 ? all.owned(at) : untouched;
    });
    const size_t bytes = on_host.size() * sizeof(int64_t);
    std::unique_ptr<void, void (*)(void *)> data(memory_allocate(kind, bytes), kind->release);
    kind->copy(data.get(), on_host.data(), bytes);

    std::vector<shift> shifts = make_shifts(all);
    exchange(all, shifts, static_cast<int64_t *>(data.get()));  // sets up connections and memory
    MPI_Barrier(all.comm);
    double seconds = MPI_Wtime();
    exchange(all, shifts, static_cast<int64_t *>(data.get()));
    seconds = MPI_Wtime() - seconds;

    kind->copy(on_host.data(), data.get(), bytes);
    long wrong = 0;
    for_each_place([&](const place &at, size_t index, int halo) {
        wrong += on_host[index] != (halo <= 1 ? all.owned(at) : untouched);
    });
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, all.comm);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, all.comm);
    if (all.rank == 0) {
        std::printf(
            "halo: %dx%dx%d ranks, %s memory, box %d^3, width %d: %.1f us, %ld wrong elements\n",
            all.ranks[0], all.ranks[1], all.ranks[2], kind->name, box, width, seconds * 1e6, wrong);
    }
    data.reset();
    shifts.clear();
    MPI_Comm_free(&all.comm);
    MPI_Finalize();
    return wrong != 0;
}
