#include "hooks/open_mpi/open_mpi.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>

#include "hooks/common/owner.hpp"
#include "hooks/open_mpi/datatype_words.hpp"
#include "ucs/base/loaded_objects.hpp"
#include "ucs/base/log.hpp"

namespace cuda_nc::hooks {
namespace {

constexpr size_t arch_search_end = 64;  // bytes of a convertor

int64_t displacement_of(const iovec &entry) noexcept {
    return static_cast<int64_t>(reinterpret_cast<intptr_t>(entry.iov_base));
}

}  // namespace

// The component that registers datatypes with UCX, or the library itself: release 4 has them apart.
bool open_mpi::is_it(void *handle, const void *function) noexcept {
    return defines(handle, "mca_pml_ucx_component", function) ||
           defines(handle, "ompi_mpi_local_convertor", function);
}

bool open_mpi::load(void *handle) noexcept try {
    int (*library_version)(char *, int *) = nullptr;
    void *mark = dlsym(handle, "ompi_mpi_local_convertor");
    if (mark == nullptr || !look_up(handle, "opal_convertor_create", &create_) ||
        !look_up(handle, "opal_convertor_raw", &raw_) ||
        !look_up(handle, "opal_local_arch", &local_arch_) ||
        !find_all([handle](const char *symbol) { return dlsym(handle, symbol); }, &opal_) ||
        !look_up(handle, "PMPI_Type_get_extent", &get_extent_) ||
        !look_up(handle, "PMPI_Type_get_name", &get_name_) ||
        !look_up(handle, "PMPI_Get_library_version", &library_version)) {
        return false;
    }
    char text[1024] = "";  // MPI_MAX_LIBRARY_VERSION_STRING is 256
    int length = 0;
    library_version(text, &length);
    const char *number = std::strstr(text, "Open MPI v");
    if (number != nullptr) {
        std::sscanf(number, "Open MPI v%u", &major_);
        number += std::strlen("Open MPI v");
        version_.assign(number, std::strcspn(number, ", \n"));
    }
    look_up(handle, "MPIX_Query_cuda_support", &supports_cuda_);
    known_types_ = {dlsym(handle, "ompi_mpi_byte"), dlsym(handle, "ompi_mpi_double")};
    datatype_words_offset_ = find_datatype_words(known_types_);
    if (!look_up(handle, "opal_datatype_destroy", &destroy_datatype_) ||
        !look_up(handle, "opal_datatype_create", &create_datatype_)) {
        create_datatype_ = nullptr;
    }
    if (!look_up(handle, "PMPI_Initialized", &initialized_) ||
        !look_up(handle, "PMPI_Finalized", &finalized_) ||
        !look_up(handle, "PMPI_Type_create_keyval", &create_key_) ||
        !look_up(handle, "PMPI_Type_free_keyval", &free_key_) ||
        !look_up(handle, "PMPI_Type_set_attr", &set_attribute_) || (major_ != 4 && major_ != 5) ||
        !look_up(handle, "ompi_datatype_get_args", &get_arguments_)) {
        get_arguments_ = nullptr;  // no type's end can be watched
    }
    nc_debug("found Open MPI %s", version_.c_str());
    return true;
} catch (...) {
    return false;
}

const convertor_map &open_mpi::explore() const noexcept {
    std::lock_guard<std::mutex> guard(exploring_);
    if (explored_.load(std::memory_order_relaxed)) {
        return map_;
    }
    try {
        scratch_convertor scratch(source());
        if (scratch.get() != nullptr && known_types_.of_1_byte != nullptr) {
            map_ =
                explore_convertor(scratch.get(), known_types_,
                                  opal_.opal_convertor_prepare_for_send, opal_.opal_convertor_pack);
        }
    } catch (...) {
        // no memory: all offsets stay unknown
    }
    nc_debug(
        "words of a convertor: position at %zu, datatype at %zu, buffer at %zu, count at %zu, "
        "bytes at %zu",
        map_.position, map_.datatype, map_.buffer, map_.count, map_.total);
    explored_.store(true, std::memory_order_release);
    return map_;
}

const open_mpi *open_mpi::find(void *handle) noexcept {
    static std::mutex mutex;
    static const open_mpi *only = nullptr;
    std::lock_guard<std::mutex> guard(mutex);
    if (only == nullptr && handle != nullptr) {
        std::unique_ptr<open_mpi> made(new (std::nothrow) open_mpi);
        if (made != nullptr && made->load(handle)) {
            only = made.release();
        }
    }
    return only;
}

const open_mpi *open_mpi::find_loaded() noexcept {
    if (const open_mpi *known = find(nullptr)) {
        return known;
    }
    void *handle = nullptr;
    try {
        for (const std::string &path : loaded_objects()) {
            // the program's own handle would find the preloaded shim's definitions
            handle = path.empty() ? nullptr : open_loaded(path.c_str());
            if (handle == nullptr) {
                continue;
            }
            void *init = dlsym(handle, "PMPI_Type_get_extent");
            if (init != nullptr && dlsym(handle, "ompi_mpi_local_convertor") != nullptr) {
                return find(handle);
            }
            dlclose(handle);
        }
    } catch (...) {
    }
    return nullptr;
}

layout_ref open_mpi::element(const void *datatype) const noexcept try {
    scratch_convertor scratch(source());
    if (scratch.get() == nullptr ||
        opal_.opal_convertor_prepare_for_send(scratch.get(), datatype, 1, nullptr) != 0) {
        return nullptr;
    }
    layout_builder builder;
    for (;;) {
        iovec blocks[64];
        uint32_t num_blocks = 64;
        size_t length = SIZE_MAX;
        int32_t done = raw_(scratch.get(), blocks, &num_blocks, &length);
        for (uint32_t i = 0; i < num_blocks; ++i) {
            builder.append(displacement_of(blocks[i]), blocks[i].iov_len);
        }
        if (done == 1) {
            return builder.finish();
        }
        if (done != 0 || num_blocks == 0) {
            return nullptr;
        }
    }
} catch (...) {
    return nullptr;
}

bool open_mpi::extent(const void *datatype, int64_t *extent_p) const noexcept {
    ptrdiff_t lower_bound, extent;
    if (get_extent_(datatype, &lower_bound, &extent) != 0) {
        return false;
    }
    *extent_p = extent;
    return true;
}

bool open_mpi::first_displacement(const void *datatype, size_t count,
                                  int64_t *displacement_p) const noexcept try {
    scratch_convertor scratch(source());
    if (scratch.get() == nullptr ||
        opal_.opal_convertor_prepare_for_send(scratch.get(), datatype, count, nullptr) != 0) {
        return false;
    }
    // a zero-length member may come first
    for (;;) {
        iovec block = {nullptr, 0};
        uint32_t num_blocks = 1;
        size_t length = SIZE_MAX;
        int32_t done = raw_(scratch.get(), &block, &num_blocks, &length);
        if (num_blocks == 1 && block.iov_len != 0) {
            *displacement_p = displacement_of(block);
            return true;
        }
        if (done != 0 || num_blocks == 0) {
            return false;
        }
    }
} catch (...) {
    return false;
}

std::string open_mpi::name(const void *datatype) const {
    return name_by(get_name_, datatype);
}

bool open_mpi::is_native(const void *convertor) const noexcept {
    // The remote architecture is the first member behind the object's header, which depends on the
    // build.
    for (size_t offset = sizeof(void *); offset < arch_search_end; offset += sizeof(uint32_t)) {
        uint32_t word;
        std::memcpy(&word, static_cast<const char *>(convertor) + offset, sizeof(word));
        if (word == *local_arch_) {
            return true;
        }
    }
    return false;
}

bool open_mpi::is_predefined(const void *datatype) const noexcept {
    constexpr int32_t named = 0;  // MPI_COMBINER_NAMED
    int32_t integers = 0, addresses = 0, datatypes = 0, combiner = -1;
    return get_arguments_ != nullptr &&
           get_arguments_(datatype, 0, &integers, nullptr, &addresses, nullptr, &datatypes, nullptr,
                          &combiner) == 0 &&
           combiner == named;
}

bool open_mpi::watch_end(const void *datatype, ended_f ended) const noexcept {
    int initialized = 0, finalized = 1, key = 0;
    if (get_arguments_ == nullptr || initialized_(&initialized) != 0 || !initialized ||
        finalized_(&finalized) != 0 || finalized) {
        return false;
    }
    // An attribute whose value is `ended`: MPI calls the key's delete function when the type dies.
    using copy_f = int (*)(void *, int, void *, void *, void *, int *is_copied_p);
    using delete_f = int (*)(void *, int, void *, void *);
    copy_f copy = [](void *, int, void *, void *, void *, int *is_copied_p) {
        *is_copied_p = 0;
        return 0;
    };
    delete_f forget = [](void *dying, int, void *value, void *) {
        reinterpret_cast<ended_f>(value)(dying);
        return 0;
    };
    // A key for each type, which dies with it: MPI may end and begin again (sessions), and ends its
    // keys then.
    if (create_key_(reinterpret_cast<void *>(copy), reinterpret_cast<void *>(forget), &key,
                    nullptr) != 0) {
        return false;
    }
    bool is_set = set_attribute_(datatype, key, reinterpret_cast<void *>(ended)) == 0;
    free_key_(&key);
    return is_set;
}

}  // namespace cuda_nc::hooks
