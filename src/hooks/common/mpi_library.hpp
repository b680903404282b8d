// What the hooks ask of an MPI library: how its datatypes are laid out, when they die, and which of
// its faults to allow for. Each library has a class of its own (open_mpi/), and common/owner.cc
// lists them; nothing else in common/ knows which libraries there are.
//
// All calls are thread safe. None is made for a message whose datatype and count are known already:
// a type_record keeps what they returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ucs/layout/layout.hpp"

namespace cuda_nc::hooks {

// One object for each library in a process; lives as long as the process. A `datatype` is what
// datatype_of() returned or the library's own interposed calls carry; it must be alive. It may be a
// pointer or a widened integer: only the library itself may look into it.
class mpi_library {
  public:
    // For messages: "Open MPI".
    virtual const char *product() const noexcept = 0;
    // "5.0.11"; empty where the library does not say.
    virtual const std::string &version() const noexcept = 0;

    // sizeof(MPI_Datatype): a pointer, or an integer.
    virtual size_t datatype_bytes() const noexcept = 0;

    // The datatype behind `context`, with which the library registers generic datatypes with UCP.
    virtual const void *datatype_of(void *context) const noexcept = 0;

    // The layout of one element. Null where the library's answers contradict each other, or memory
    // is exhausted. Costs O(blocks).
    virtual layout_ref element(const void *datatype) const noexcept = 0;

    // Bytes from one element to the next, of any sign. False where the library does not say.
    virtual bool extent(const void *datatype, int64_t *extent_p) const noexcept = 0;

    // Displacement in bytes of the first byte, in type-map order, of `count` elements. False where
    // they have no bytes, or the library does not say. O(1).
    virtual bool first_displacement(const void *datatype, size_t count,
                                    int64_t *displacement_p) const noexcept = 0;

    // For messages: "my_type", or "an unnamed datatype". Throws std::bad_alloc.
    virtual std::string name(const void *datatype) const = 0;

    // Why this release must not pack host memory itself, in words for the statistics (a text that
    // lives as long as the process). Null where its packing can be trusted.
    virtual const char *packing_fault() const noexcept = 0;
    bool packs_wrongly() const noexcept { return packing_fault() != nullptr; }

    // Whether its own operations fail where a message is unpacked in fragments.
    virtual bool unpacks_only_whole_messages() const noexcept { return false; }

    // Whether its own operations take buffers in GPU memory. False where it does not say.
    virtual bool takes_gpu_memory() const noexcept = 0;

    // Whether messages within a machine may go by shared memory of its own, past UCX. True where it
    // does not say. To be asked after MPI_Init; does not change then.
    virtual bool has_own_shared_memory() const noexcept { return true; }
    // Whether all messages to other processes go by UCX. False where that is not known yet: no
    // datatype has been registered.
    virtual bool sends_by_ucx() const noexcept { return false; }

    // Predefined datatypes (MPI_INT) never die, and need no record.
    virtual bool is_predefined(const void *datatype) const noexcept = 0;

    // `ended` is called once, when the datatype dies, by the thread that frees it. False, and it is
    // never called, where the library cannot promise that: before MPI_Init and after MPI_Finalize,
    // for instance.
    using ended_f = void (*)(const void *datatype) noexcept;
    virtual bool watch_end(const void *datatype, ended_f ended) const noexcept = 0;

    // A datatype of it has been registered with UCP, with our operations.
    virtual void note_registered() const noexcept {}

  protected:
    ~mpi_library() = default;

    // name() by the library's PMPI_Type_get_name.
    static std::string name_by(int (*get_name)(const void *datatype, char *text, int *length_p),
                               const void *datatype) {
        char text[256] = "";  // MPI_MAX_OBJECT_NAME is 64 or 128
        int length = 0;
        const bool has_name = get_name(datatype, text, &length) == 0 && text[0] != '\0';
        return has_name ? text : "an unnamed datatype";
    }
};

}  // namespace cuda_nc::hooks
