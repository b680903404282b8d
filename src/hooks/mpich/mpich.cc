#include "hooks/mpich/mpich.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "hooks/common/owner.hpp"
#include "ucs/base/loaded_objects.hpp"
#include "ucs/base/log.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::hooks {
bool mpich::is_it(void *handle, const void *function) noexcept {
    return defines(handle, "MPIR_Process", function) ||
           (defines(handle, "MPIX_Comm_failure_ack", function) &&
            dlsym(handle, "ompi_mpi_local_convertor") == nullptr);
}

bool mpich::load(void *handle) noexcept try {
    int (*library_version)(char *, int *) = nullptr;
    if (!look_up(handle, "PMPIX_Type_iov_len", &block_count_) ||
        !look_up(handle, "PMPIX_Type_iov", &blocks_) ||
        !look_up(handle, "PMPI_Type_get_extent", &get_extent_) ||
        !look_up(handle, "PMPI_Type_get_true_extent", &get_true_extent_) ||
        !look_up(handle, "PMPI_Type_get_name", &get_name_) ||
        !look_up(handle, "PMPI_Type_create_keyval", &create_key_) ||
        !look_up(handle, "PMPI_Type_set_attr", &set_attribute_) ||
        !look_up(handle, "PMPI_Type_free_keyval", &free_key_) ||
        !look_up(handle, "PMPI_Get_library_version", &library_version)) {
        return false;
    }
    std::vector<char> text(8192, '\0');  // MPI_MAX_LIBRARY_VERSION_STRING
    int length = 0;
    library_version(text.data(), &length);
    constexpr char title[] = "MPICH Version:";
    const char *number = std::strstr(text.data(), title);
    if (number == nullptr) {
        return false;  // made of MPICH, and called otherwise: nobody has tried it
    }
    number += std::strlen(title);
    number += std::strspn(number, " \t");
    version_.assign(number, std::strcspn(number, " \t\n"));
    look_up(handle, "MPIX_Query_cuda_support", &supports_cuda_);
    type_functions &contents = by_contents_;
    if (!look_up(handle, "PMPI_Type_get_envelope_c", &contents.get_envelope) ||
        !look_up(handle, "PMPI_Type_get_contents_c", &contents.get_contents) ||
        !look_up(handle, "PMPI_Type_get_extent", &contents.get_extent) ||
        !look_up(handle, "PMPI_Type_size", &contents.get_size) ||
        !look_up(handle, "PMPI_Type_free", &contents.free) ||
        !look_up(handle, "PMPIX_Type_iov", &contents.get_blocks)) {
        contents = {};
    }
    if (!look_up(handle, "PMPI_T_init_thread", &tool_init_) ||
        !look_up(handle, "PMPI_T_cvar_get_index", &setting_index_) ||
        !look_up(handle, "PMPI_T_cvar_handle_alloc", &setting_open_) ||
        !look_up(handle, "PMPI_T_cvar_handle_free", &setting_close_) ||
        !look_up(handle, "PMPI_T_cvar_read", &setting_read_) ||
        !look_up(handle, "PMPI_T_cvar_write", &setting_write_)) {
        tool_init_ = nullptr;
    }
    nc_debug("found MPICH %s", version_.c_str());
    return true;
} catch (...) {
    return false;
}

const mpich *mpich::find(void *handle) noexcept {
    static std::mutex mutex;
    static const mpich *only = nullptr;
    std::lock_guard<std::mutex> guard(mutex);
    if (only == nullptr && handle != nullptr) {
        std::unique_ptr<mpich> made(new (std::nothrow) mpich);
        if (made != nullptr && made->load(handle)) {
            only = made.release();
        }
    }
    return only;
}

const void *mpich::datatype_of(void *context) const noexcept {
    int handle;  // an MPICH object begins with it
    std::memcpy(&handle, context, sizeof(handle));
    return reinterpret_cast<const void *>(static_cast<intptr_t>(handle));
}

bool mpich::is_whole(const void *datatype, const layout &what) const noexcept {
    intptr_t lower, extent;
    return what.packed_size() == 0 ||
           (get_true_extent_(datatype, &lower, &extent) == 0 && what.lower_bound() == lower &&
            what.upper_bound() == lower + extent);
}

// Null where MPICH reports an error, or blocks that contradict the type's size and bounds.
layout_ref mpich::list(const void *datatype) const {
    constexpr intptr_t at_once = 1024;
    intptr_t num_blocks = 0, num_bytes = 0;
    if (block_count_(datatype, INTPTR_MAX, &num_blocks, &num_bytes) != 0) {
        return nullptr;
    }
    layout_builder builder;
    std::vector<type_block> blocks(static_cast<size_t>(std::min(num_blocks, at_once)));
    for (intptr_t first = 0; first < num_blocks;) {
        intptr_t got = 0;
        if (blocks_(datatype, first, blocks.data(), static_cast<intptr_t>(blocks.size()), &got) !=
                0 ||
            got <= 0) {
            return nullptr;
        }
        for (intptr_t i = 0; i < got; ++i) {
            const type_block &one = blocks[static_cast<size_t>(i)];
            builder.append(one.displacement, static_cast<uint64_t>(one.length));
        }
        first += got;
    }
    layout_ref made = builder.finish();
    return made != nullptr && made->packed_size() == static_cast<uint64_t>(num_bytes) &&
                   is_whole(datatype, *made)
               ? made
               : nullptr;
}

// MPICH lists wrong blocks for some types with negative extents inside, so the calls that made the
// type come first.
layout_ref mpich::element(const void *datatype) const noexcept try {
    layout_ref made;
    if (by_contents_.get_envelope != nullptr) {
        made = read_contents(by_contents_, static_cast<int>(reinterpret_cast<intptr_t>(datatype)));
    }
    return made != nullptr ? made : list(datatype);
} catch (...) {
    return nullptr;
}

bool mpich::extent(const void *datatype, int64_t *extent_p) const noexcept {
    intptr_t lower_bound, extent;
    if (get_extent_(datatype, &lower_bound, &extent) != 0) {
        return false;
    }
    *extent_p = extent;
    return true;
}

bool mpich::first_displacement(const void *datatype, size_t count,
                               int64_t *displacement_p) const noexcept {
    type_block first = {0, 0};
    intptr_t got = 0;
    if (count == 0 || blocks_(datatype, 0, &first, 1, &got) != 0 || got != 1) {
        return false;
    }
    *displacement_p = first.displacement;
    return true;
}

std::string mpich::name(const void *datatype) const {
    return name_by(get_name_, datatype);
}

// The two highest bits of a handle tell its kind.
bool mpich::is_predefined(const void *datatype) const noexcept {
    constexpr uint32_t builtin = 1;
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(datatype)) >> 30 == builtin;
}

// An attribute whose value is `ended`: MPI calls the key's delete function when the type dies.
bool mpich::watch_end(const void *datatype, ended_f ended) const noexcept {
    auto copy = [](int, int, void *, void *, void *, int *is_copied_p) {
        *is_copied_p = 0;
        return 0;
    };
    auto forget = [](int dying, int, void *value, void *) {
        reinterpret_cast<ended_f>(value)(reinterpret_cast<const void *>(intptr_t(dying)));
        return 0;
    };
    // A key for each type, which dies with it: MPI may end and begin again (sessions).
    int key = 0;
    if (create_key_(copy, forget, &key, nullptr) != 0) {
        return false;
    }
    const bool is_set = set_attribute_(datatype, key, reinterpret_cast<void *>(ended)) == 0;
    free_key_(&key);
    return is_set;
}

void *mpich::open_setting(const char *name) const noexcept {
    int provided, index, count = 0;
    void *handle = nullptr;
    constexpr int thread_single = 0;
    // The tool interface stays open: to close it where the program has opened it too is not safe in
    // all releases.
    if (tool_init_ == nullptr || tool_init_(thread_single, &provided) != 0 ||
        setting_index_(name, &index) != 0 || setting_open_(index, nullptr, &handle, &count) != 0) {
        return nullptr;
    }
    if (count != 1) {
        setting_close_(&handle);
        return nullptr;
    }
    return handle;
}

// MPICH receives derived types into memory of its own and unpacks there, unless its setting
// UCX_DT_RECV says that UCX shall call the datatype's operations. That holds for all types, so
// those that are left to MPICH's own operations are gathered for it (gathered_receive.hpp).
bool mpich::receive_by_datatype() const noexcept {
    void *handle = open_setting("MPIR_CVAR_UCX_DT_RECV");
    const int on = 1;
    int index;
    if (handle == nullptr && tool_init_ != nullptr &&
        setting_index_("MPIR_CVAR_UCX_DT_RECV", &index) != 0) {
        return true;  // 4.1.0 to 4.1.2 have no such setting, and always do so
    }
    const bool is_set = handle != nullptr && setting_write_(handle, &on) == 0;
    if (handle != nullptr) {
        setting_close_(&handle);
    }
    return is_set;
}

// MPICH reads it once, when it starts.
bool mpich::has_own_shared_memory() const noexcept {
    static const bool known = [this] {
        int is_without = 0;
        void *handle = open_setting("MPIR_CVAR_NOLOCAL");
        if (handle != nullptr) {
            is_without = setting_read_(handle, &is_without) == 0 ? is_without : 0;
            setting_close_(&handle);
        }
        return is_without == 0;
    }();
    return known;
}

void mpich::note_registered() const noexcept {
    std::call_once(first_registered_, [this] {
        const bool is_told = receive_by_datatype();
        if (!is_told) {
            nc_warn(
                "MPICH %s cannot be told to receive by UCX's datatypes (MPIR_CVAR_UCX_DT_RECV): "
                "its receives are left to MPICH",
                version_.c_str());
        }
        is_registered_.store(is_told, std::memory_order_release);
    });
}

}  // namespace cuda_nc::hooks
