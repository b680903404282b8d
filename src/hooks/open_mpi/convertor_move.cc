#include "hooks/open_mpi/convertor_move.hpp"

#include <algorithm>
#include <vector>

#include "hooks/common/watched_types.hpp"
#include "hooks/open_mpi/convertor_parts.hpp"
#include "ucs/base/log.hpp"

namespace cuda_nc::hooks {
namespace {

bool begin(bool packs, const open_mpi &api, tracked_convertor &entry) {
    if (entry.what == nullptr) {
        entry.what = make_layout(api, entry.datatype, entry.count);
        if (entry.what == nullptr) {
            nc_error("datatype %s in GPU memory cannot be packed: its layout cannot be read",
                     api.name(entry.datatype).c_str());
            return false;
        }
    }
    if (entry.running == nullptr) {
        entry.running = packs
                            ? dt::request_state::start_pack(entry.what, entry.buffer, entry.info)
                            : dt::request_state::start_unpack(entry.what, entry.buffer, entry.info);
    }
    return entry.running != nullptr;
}

}  // namespace

gpu::memory_kind kind_at(const void *address) noexcept {
    return address != nullptr ? gpu::platform::instance().query(address).kind
                              : gpu::memory_kind::host;
}

layout_ref make_layout(const open_mpi &api, const void *datatype, size_t count) noexcept try {
    counted_layout made;
    if (const auto *kept = find_watched_layout(api, datatype, count, unknown_size, &made)) {
        return kept->what;
    }
    int64_t extent;
    layout_ref element = api.element(datatype);
    if (element == nullptr || !api.extent(datatype, &extent)) {
        return nullptr;
    }
    return count == 1 ? element : element->repeat(count, extent);
} catch (...) {
    return nullptr;
}

int32_t move_tracked(bool packs, const open_mpi &api, void *convertor, tracked_convertor &entry,
                     iovec *parts, uint32_t *num_parts_p, size_t *length_p) noexcept try {
    if (!begin(packs, api, entry)) {
        return -1;
    }
    size_t *shared = api.map().position_in(convertor);  // a caller may have set it
    entry.position = shared != nullptr ? *shared : entry.position;
    const size_t size = entry.what->packed_size();
    dt::request_state &state = *entry.running;
    ucs_status_t status = move_parts(
        packs, size, &entry.position, parts, num_parts_p, length_p,
        [packs, &state](size_t offset, void *packed, size_t length) {
            if (!packs) {
                return state.unpack(offset, packed, length);
            }
            return state.pack(offset, packed, length) == length ? UCS_OK : UCS_ERR_IO_ERROR;
        });
    if (!packs && status == UCS_OK) {
        // The receiver of a short message, or of fragments in another order, may never call again.
        status = state.flush();
    }
    if (status != UCS_OK) {
        nc_error("%s GPU memory failed: %s", packs ? "packing" : "unpacking", status_text(status));
        return -1;
    }
    if (shared != nullptr) {
        *shared = entry.position;
    }
    if (entry.position < size) {
        return 0;
    }
    entry.stop();
    entry.what.reset();  // nobody says when a convertor dies
    return 1;
} catch (...) {
    nc_error("%s GPU memory failed: no memory", packs ? "packing" : "unpacking");
    return -1;
}

int32_t move_by_host(bool packs, move_f original, void *convertor, iovec *parts,
                     uint32_t *num_parts_p, size_t *length_p) noexcept try {
    // Each call of the original gets one piece of at most the bounce buffer's size.
    const uint32_t num_parts = *num_parts_p;
    size_t total = 0;
    uint32_t part = 0;
    int32_t status = 0;
    for (; part < num_parts && status == 0; ++part) {
        char *packed = static_cast<char *>(parts[part].iov_base);
        const size_t wanted = parts[part].iov_len;
        bool on_device = is_device_memory(packed);
        std::vector<char> bounce(on_device ? std::min(wanted, bounce_bytes) : 0);
        size_t done = 0;
        while (done < wanted && status == 0) {
            size_t length = on_device ? std::min(wanted - done, bounce.size()) : wanted - done;
            iovec piece = {on_device ? bounce.data() : packed + done, length};
            if (on_device && !packs &&
                dt::copy(one_block(length), packed + done, bounce.data()) != UCS_OK) {
                return -1;
            }
            uint32_t one = 1;
            size_t moved = length;
            status = original(convertor, &piece, &one, &moved);
            if (status < 0) {
                return status;
            }
            if (on_device && packs && moved != 0 &&
                dt::copy(one_block(moved), bounce.data(), packed + done) != UCS_OK) {
                return -1;
            }
            done += moved;
            if (moved == 0) {
                break;
            }
        }
        parts[part].iov_len = done;
        total += done;
        if (done < wanted && status == 0) {
            ++part;
            break;
        }
    }
    *num_parts_p = part;
    *length_p = total;
    return status;
} catch (...) {
    nc_error("%s failed: no memory for a bounce buffer for packed bytes in GPU memory",
             packs ? "packing" : "unpacking");
    return -1;
}

}  // namespace cuda_nc::hooks
