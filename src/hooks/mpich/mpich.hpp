// MPICH from 4.1 on, by the functions that every such release exports.
//
// A datatype is MPICH's integer handle, widened. Only handles of derived types come here: these
// have the same value in both of MPICH's ABIs (libmpi and libmpi_abi).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "hooks/common/mpi_library.hpp"
#include "hooks/mpich/type_contents.hpp"

namespace cuda_nc::hooks {

class mpich final : public mpi_library {
  public:
    // Whether the object of `handle`, which holds `function`, is MPICH.
    static bool is_it(void *handle, const void *function) noexcept;

    // The MPICH that `handle` reaches; made once for a process. Null where it cannot tell a
    // datatype's blocks: before 4.1, and libraries made of it that are called otherwise.
    static const mpich *find(void *handle) noexcept;

    const char *product() const noexcept override { return "MPICH"; }
    const std::string &version() const noexcept override { return version_; }
    size_t datatype_bytes() const noexcept override { return sizeof(int); }
    const void *datatype_of(void *context) const noexcept override;
    layout_ref element(const void *datatype) const noexcept override;
    bool extent(const void *datatype, int64_t *extent_p) const noexcept override;
    bool first_displacement(const void *datatype, size_t count,
                            int64_t *displacement_p) const noexcept override;
    std::string name(const void *datatype) const override;
    // MPICH 5.0 ends with SIGFPE or delivers wrong bytes for types with negative extents inside.
    const char *packing_fault() const noexcept override {
        return "host memory; MPICH may unpack it wrongly";
    }
    // They unpack whole values, and report "truncated" where a fragment ends inside one.
    bool unpacks_only_whole_messages() const noexcept override { return true; }
    bool takes_gpu_memory() const noexcept override {
        return supports_cuda_ != nullptr && supports_cuda_() == 1;
    }
    bool has_own_shared_memory() const noexcept override;
    // MPICH may have libfabric in the place of UCX, and then registers nothing; or it may unpack
    // what it receives by itself.
    bool sends_by_ucx() const noexcept override {
        return is_registered_.load(std::memory_order_acquire) && !has_own_shared_memory();
    }
    // Types of pairs (MPI_FLOAT_INT) count as derived ones: their elements may have gaps.
    bool is_predefined(const void *datatype) const noexcept override;
    bool watch_end(const void *datatype, ended_f ended) const noexcept override;
    void note_registered() const noexcept override;

  private:
    bool load(void *handle) noexcept;
    layout_ref list(const void *datatype) const;
    bool is_whole(const void *datatype, const layout &what) const noexcept;
    bool receive_by_datatype() const noexcept;
    // Null where MPI has no such setting of one value.
    void *open_setting(const char *name) const noexcept;

    int (*block_count_)(const void *, intptr_t max_bytes, intptr_t *num_blocks_p,
                        intptr_t *num_bytes_p) = nullptr;
    int (*blocks_)(const void *, intptr_t first, type_block *blocks, intptr_t room,
                   intptr_t *num_blocks_p) = nullptr;
    int (*get_extent_)(const void *, intptr_t *lower_bound_p, intptr_t *extent_p) = nullptr;
    int (*get_true_extent_)(const void *, intptr_t *lower_bound_p, intptr_t *extent_p) = nullptr;
    type_functions by_contents_;  // its members are null where one is missing
    int (*get_name_)(const void *, char *, int *) = nullptr;
    int (*create_key_)(int (*copy)(int, int, void *, void *, void *, int *is_copied_p),
                       int (*forget)(int datatype, int, void *value, void *), int *key_p,
                       void *) = nullptr;
    int (*set_attribute_)(const void *datatype, int key, void *value) = nullptr;
    int (*free_key_)(int *key_p) = nullptr;
    int (*supports_cuda_)() = nullptr;  // null: not known
    // MPI's tool interface, for settings of MPICH. Null together.
    int (*tool_init_)(int required, int *provided_p) = nullptr;
    int (*setting_index_)(const char *name, int *index_p) = nullptr;
    int (*setting_open_)(int index, void *object, void **handle_p, int *count_p) = nullptr;
    int (*setting_close_)(void **handle_p) = nullptr;
    int (*setting_read_)(void *handle, void *value) = nullptr;
    int (*setting_write_)(void *handle, const void *value) = nullptr;
    std::string version_;
    mutable std::atomic<bool> is_registered_{false};  // some type, with UCX, which receives by it
    mutable std::once_flag first_registered_;
};

}  // namespace cuda_nc::hooks
