// The functions that every Open MPI exports, and what the hooks learn of a datatype by them.
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

#include "hooks/open_mpi/convertor_map.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::hooks {

// What a convertor was prepared with.
struct convertor_content {
    const void *datatype;
    char *buffer;
    size_t count;  // elements
    size_t total;  // packed bytes
    size_t *position_p;
};

class open_mpi {
  public:
    // The Open MPI that `handle` reaches, or null; made once for a process, lives for ever.
    static const open_mpi *find(void *handle) noexcept;

    // The same without a handle: searches the loaded objects until one reaches an Open MPI.
    static const open_mpi *find_loaded() noexcept;

    // One element in type-map order. Null where Open MPI's answers contradict each other, or
    // memory is exhausted. Thread safe; costs O(blocks).
    layout_ref element(const void *datatype) const noexcept;

    // False where it cannot be had.
    bool extent(const void *datatype, int64_t *extent_p) const noexcept;

    // Displacement of the first byte in type-map order; false where there are no bytes. O(1).
    bool first_displacement(const void *datatype, size_t count,
                            int64_t *displacement_p) const noexcept;

    // For messages: "my_type", or "an unnamed datatype".
    std::string name(const void *datatype) const;

    const std::string &version() const noexcept { return version_; }

    // False for releases later than ours, whose convertor may be another.
    bool is_known() const noexcept { return major_ <= 5; }

    // Open MPI 5.0's own convertor delivers wrong bytes for some derived types: complex vectors
    // with odd strides, and partial messages of misaligned blocks.
    bool packs_wrongly() const noexcept { return major_ >= 5; }

    // Whether its own operations take GPU memory; false where it does not say.
    bool takes_gpu_memory() const noexcept {
        return supports_cuda_ != nullptr && supports_cuda_() == 1;
    }

    // Same bytes on both sides of a convertor, as the local architecture has them.
    bool is_native(const void *convertor) const noexcept;

    // What lies inside a convertor is learned by the first call, which packs a few bytes.

    // Where a convertor keeps how many packed bytes it has passed; null where that was not found.
    size_t *position(void *convertor) const noexcept;

    // False where the convertor has since been given another datatype or buffer (copied onto, by
    // code that nobody can stand in front of).
    bool is_prepared_for(const void *convertor, const void *datatype,
                         const void *buffer) const noexcept;

    // False where some of it cannot be found.
    bool look_into(void *convertor, convertor_content *content_p) const noexcept;

    // The end of a datatype: `forget` is called with `known` when it dies. False where that is not
    // to be had: outside of MPI_Init and MPI_Finalize, for instance. Predefined types never die.
    using forget_f = int (*)(void *datatype, int key, void *known, void *unused);
    bool watch(const void *datatype, forget_f forget, void *known) const noexcept;
    bool is_predefined(const void *datatype) const noexcept;

    // The originals of the interposed symbols.
    int32_t (*prepare_for_send)(void *, const void *, size_t, const void *) = nullptr;
    int32_t (*prepare_for_recv)(void *, const void *, size_t, const void *) = nullptr;
    int32_t (*pack)(void *, iovec *, uint32_t *, size_t *) = nullptr;
    int32_t (*unpack)(void *, iovec *, uint32_t *, size_t *) = nullptr;
    int32_t (*copy_same)(const void *, int32_t, char *, char *) = nullptr;

  private:
    bool load(void *handle) noexcept;
    const convertor_map &explore() const noexcept;
    const convertor_map &map() const noexcept {
        return CUDA_NC_LIKELY(explored_.load(std::memory_order_acquire)) ? map_ : explore();
    }

    void *(*create_)(int32_t, int32_t) = nullptr;
    int32_t (*raw_)(void *, iovec *, uint32_t *, size_t *) = nullptr;
    int (*get_extent_)(const void *, ptrdiff_t *, ptrdiff_t *) = nullptr;
    int (*get_name_)(const void *, char *, int *) = nullptr;
    int (*supports_cuda_)() = nullptr;  // null: not known
    const uint32_t *local_arch_ = nullptr;
    known_types known_types_ = {};
    // Null where this Open MPI does not have them, or has the last with other arguments.
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
