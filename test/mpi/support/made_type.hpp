// An MPI datatype and, made beside it by the definitions of the MPI standard, its type map.
#pragma once

#include <mpi.h>

#include <string>
#include <utility>
#include <vector>

#include "type_map.hpp"

namespace mpi_test {

// open: a struct's bounds are those of its resized members, if any, else of all.
// regular: of copies at one distance, whose extent is rounded up once.
enum bounds_are { known, open, regular };

class made_type {
  public:
    // For a predefined type, which is never freed.
    made_type(MPI_Datatype handle, type_map map, std::string text)
        : handle_(handle), map_(std::move(map)), text_(std::move(text)) {}
    made_type(made_type &&other) noexcept
        : handle_(std::exchange(other.handle_, MPI_DATATYPE_NULL)),
          owned_(other.owned_),
          map_(std::move(other.map_)),
          text_(std::move(other.text_)) {}
    made_type &operator=(made_type &&other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(owned_, other.owned_);
        std::swap(map_, other.map_);
        std::swap(text_, other.text_);
        return *this;
    }
    ~made_type() { release(); }

    MPI_Datatype handle() const { return handle_; }
    const type_map &map() const { return map_; }
    const std::string &text() const { return text_; }

    made_type &commit() {
        MPI_Type_commit(&handle_);
        return *this;
    }
    // Frees the MPI type now; the type map stays.
    void release() {
        if (owned_ && handle_ != MPI_DATATYPE_NULL) {
            MPI_Type_free(&handle_);
        }
        owned_ = false;
    }

    // Takes the bounds from the MPI library where the standard leaves them to it: for types without
    // bytes or with overlap, and the padding that rounds an extent up (Open MPI at times adds
    // more, but not to regular types).
    void adopt_bounds(bounds_are bounds) {
        MPI_Aint lb = 0;
        MPI_Aint extent = 0;
        MPI_Type_get_extent(handle_, &lb, &extent);
        int64_t padding = extent - map_.extent();
        constexpr int64_t largest_alignment = 16;
        const int64_t most_padding = bounds == regular ? largest_alignment - 1 : 64;
        if (bounds == open || map_.size() == 0 || (bounds == known && map_.overlaps()) ||
            (lb == map_.lb() && padding > 0 && padding <= most_padding)) {
            map_.resize(lb, extent);
        }
    }

    // Whether the MPI library agrees on size and bounds.
    bool agrees() const {
        MPI_Aint lb = 0;
        MPI_Aint extent = 0;
        MPI_Count size = 0;
        MPI_Type_get_extent(handle_, &lb, &extent);
        MPI_Type_size_x(handle_, &size);
        return size == map_.size() && lb == map_.lb() && extent == map_.extent();
    }

  private:
    friend made_type finish_type(MPI_Datatype, type_map, std::string, bounds_are);

    MPI_Datatype handle_ = MPI_DATATYPE_NULL;
    bool owned_ = false;
    type_map map_;
    std::string text_;
};

struct placement {
    int count;             // elements
    int64_t displacement;  // elements or bytes, as the constructor has it
};

made_type contiguous(int count, const made_type &old);
made_type vector(int count, int length, int stride, const made_type &old);
made_type hvector(int count, int length, int64_t stride, const made_type &old);
made_type indexed(const std::vector<placement> &blocks, const made_type &old);
made_type hindexed(const std::vector<placement> &blocks, const made_type &old);
made_type indexed_block(int length, const std::vector<int64_t> &displacements,
                        const made_type &old);
made_type hindexed_block(int length, const std::vector<int64_t> &displacements,
                         const made_type &old);

struct struct_member {
    placement place;  // displacement in bytes
    const made_type *type;
};
made_type structure(const std::vector<struct_member> &members);

struct dimension {
    int size;
    int part;   // of the subarray
    int start;  // of the subarray
};
made_type subarray(const std::vector<dimension> &dimensions, bool fortran, const made_type &old);

struct distribution {
    int size;
    int kind;       // MPI_DISTRIBUTE_BLOCK, _CYCLIC or _NONE
    int argument;   // block size, or MPI_DISTRIBUTE_DFLT_DARG
    int processes;  // in this dimension
};
made_type darray(int rank, const std::vector<distribution> &dimensions, bool fortran,
                 const made_type &old);

made_type resized(int64_t lb, int64_t extent, const made_type &old);
made_type duplicate(const made_type &old);

// Predefined types: their names are MPI's without "MPI_".
const std::vector<made_type> &basic_types();
const made_type &basic(const std::string &name);

}  // namespace mpi_test
