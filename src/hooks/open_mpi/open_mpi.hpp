// Open MPI, by the functions that every release of it exports.
//
// A datatype is Open MPI's opaque `ompi_datatype_t *`, which is also its `opal_datatype_t *` and
// the MPI_Datatype handle.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "hooks/common/mpi_library.hpp"
#include "hooks/open_mpi/convertor_map.hpp"
#include "hooks/open_mpi/opal_functions.hpp"
#include "hooks/open_mpi/scratch_convertor.hpp"
#include "ucs/base/compiler.hpp"

namespace cuda_nc::hooks {

class open_mpi final : public mpi_library {
  public:
    // Whether the object of `handle`, which holds `function`, is Open MPI's UCX layer.
    static bool is_it(void *handle, const void *function) noexcept;

    // The Open MPI that `handle` reaches, or null; made once for a process.
    static const open_mpi *find(void *handle) noexcept;

    // The same without a handle: searches the loaded objects until one reaches an Open MPI.
    static const open_mpi *find_loaded() noexcept;

    const char *product() const noexcept override { return "Open MPI"; }
    const std::string &version() const noexcept override { return version_; }
    size_t datatype_bytes() const noexcept override { return sizeof(void *); }
    const void *datatype_of(void *context) const noexcept override { return context; }
    layout_ref element(const void *datatype) const noexcept override;
    bool extent(const void *datatype, int64_t *extent_p) const noexcept override;
    bool first_displacement(const void *datatype, size_t count,
                            int64_t *displacement_p) const noexcept override;
    std::string name(const void *datatype) const override;
    // Open MPI 5.0's own convertor delivers wrong bytes for some derived types: complex vectors
    // with odd strides, and partial messages of misaligned blocks.
    const char *packing_fault() const noexcept override {
        return major_ >= 5 ? "host memory; this Open MPI may pack it wrongly" : nullptr;
    }
    bool takes_gpu_memory() const noexcept override {
        return supports_cuda_ != nullptr && supports_cuda_() == 1;
    }
    bool is_predefined(const void *datatype) const noexcept override;
    bool watch_end(const void *datatype, ended_f ended) const noexcept override;

    // ---- for the replacements of its convertor's functions (convertor.hpp)

    // False for later releases than we have seen: the convertor may be another.
    bool is_known() const noexcept { return major_ <= 5; }

    const opal_functions &originals() const noexcept { return opal_; }

    // True where both sides of a convertor have the local architecture, so the same bytes.
    bool is_native(const void *convertor) const noexcept;

    // The first call packs a few bytes to find out.
    const convertor_map &map() const noexcept {
        return CUDA_NC_LIKELY(explored_.load(std::memory_order_acquire)) ? map_ : explore();
    }

    // Where a datatype's size and bounds lie in it (datatype_words.hpp); 0: unknown.
    size_t datatype_words_offset() const noexcept { return datatype_words_offset_; }

    // A datatype without bytes, which is not committed; null: no memory, or this release has no
    // such call. The caller destroys it.
    void *create_datatype(int32_t expected_members) const noexcept {
        return create_datatype_ != nullptr ? create_datatype_(expected_members) : nullptr;
    }
    void destroy_datatype(void *datatype) const noexcept { destroy_datatype_(&datatype); }

  private:
    bool load(void *handle) noexcept;
    const convertor_map &explore() const noexcept;
    convertor_source source() const noexcept {
        return {create_, *local_arch_, opal_.opal_convertor_prepare_for_send,
                known_types_.of_1_byte};
    }

    opal_functions opal_;
    void *(*create_)(int32_t, int32_t) = nullptr;
    int32_t (*raw_)(void *, iovec *, uint32_t *, size_t *) = nullptr;
    int (*get_extent_)(const void *, ptrdiff_t *, ptrdiff_t *) = nullptr;
    int (*get_name_)(const void *, char *, int *) = nullptr;
    int (*supports_cuda_)() = nullptr;  // null: not known
    const uint32_t *local_arch_ = nullptr;
    known_types known_types_ = {};
    size_t datatype_words_offset_ = 0;
    void *(*create_datatype_)(int32_t expected_members) = nullptr;
    int32_t (*destroy_datatype_)(void **) = nullptr;
    // To watch a datatype's end. get_arguments_ is null where one of them is missing, or where this
    // release may give it other arguments.
    int (*initialized_)(int *) = nullptr;
    int (*finalized_)(int *) = nullptr;
    int (*create_key_)(void *copy, void *forget, int *key_p, void *) = nullptr;
    int (*free_key_)(int *key_p) = nullptr;
    int (*set_attribute_)(const void *, int key, void *) = nullptr;
    int32_t (*get_arguments_)(const void *, int32_t, int32_t *, int32_t *, int32_t *, ptrdiff_t *,
                              int32_t *, void **, int32_t *) = nullptr;
    unsigned major_ = 0;
    std::string version_;
    mutable std::mutex exploring_;
    mutable std::atomic<bool> explored_{false};
    mutable convertor_map map_;
};

}  // namespace cuda_nc::hooks
