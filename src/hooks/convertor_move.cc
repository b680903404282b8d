#include "hooks/convertor_move.hpp"

#include <algorithm>
#include <vector>

#include "ucs/base/log.hpp"

namespace cuda_nc::hooks {
namespace {

constexpr size_t bounce_bytes = 1 << 20;

layout_ref contiguous(size_t length) {
    layout_builder builder;
    builder.append(0, length);
    return builder.finish();
}

// The engine packs to host memory only; packed bytes on a GPU pass through `bounce`.
ucs_status_t move_part(bool packs, dt::request_state &state, size_t offset, const iovec &part) {
    if (!is_device_memory(part.iov_base)) {
        if (!packs) {
            return state.unpack(offset, part.iov_base, part.iov_len);
        }
        return state.pack(offset, part.iov_base, part.iov_len) == part.iov_len ? UCS_OK
                                                                               : UCS_ERR_IO_ERROR;
    }
    std::vector<char> bounce(std::min(part.iov_len, bounce_bytes));
    for (size_t done = 0; done < part.iov_len;) {
        size_t length = std::min(part.iov_len - done, bounce.size());
        char *packed = static_cast<char *>(part.iov_base) + done;
        ucs_status_t status = UCS_OK;
        if (packs) {
            if (state.pack(offset + done, bounce.data(), length) != length) {
                return UCS_ERR_IO_ERROR;
            }
            status = dt::copy(contiguous(length), bounce.data(), packed);
        } else {
            status = dt::copy(contiguous(length), packed, bounce.data());
            status = status == UCS_OK ? state.unpack(offset + done, bounce.data(), length) : status;
        }
        if (status != UCS_OK) {
            return status;
        }
        done += length;
    }
    return UCS_OK;
}

bool begin(bool packs, const open_mpi &api, tracked_convertor &entry) {
    if (entry.what == nullptr) {
        entry.what = make_layout(api, entry.datatype, entry.count);
        if (entry.what == nullptr) {
            nc_error("the layout of datatype %s cannot be read, and its buffer is GPU memory",
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

bool is_device_memory(const void *address) noexcept {
    return address != nullptr &&
           gpu::platform::instance().query(address).kind == gpu::memory_kind::device;
}

layout_ref make_layout(const open_mpi &api, const void *datatype, size_t count) noexcept try {
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
    size_t *shared = api.position(convertor);  // a caller may have set it
    size_t position = shared != nullptr ? *shared : entry.position;
    const size_t size = entry.what->packed_size();
    size_t total = 0;
    uint32_t part = 0;
    for (; part < *num_parts_p && position < size; ++part) {
        parts[part].iov_len = std::min<size_t>(parts[part].iov_len, size - position);
        ucs_status_t status = move_part(packs, *entry.running, position, parts[part]);
        if (status != UCS_OK) {
            nc_error("%s %zu bytes of GPU memory failed: %s", packs ? "packing" : "unpacking",
                     size_t(parts[part].iov_len), status_text(status));
            return -1;
        }
        position += parts[part].iov_len;
        total += parts[part].iov_len;
    }
    if (total == 0) {
        parts[0].iov_len = 0;
    }
    *num_parts_p = part;
    *length_p = total;
    entry.position = position;
    if (shared != nullptr) {
        *shared = position;
    }
    if (position < size) {
        return 0;
    }
    entry.stop();
    return 1;
} catch (...) {
    nc_error("no memory to move GPU memory");
    return -1;
}

int32_t move_by_host(bool packs, move_f original, void *convertor, iovec *parts,
                     uint32_t *num_parts_p, size_t *length_p) noexcept try {
    // one part a call, as large as our buffer: callers go on until they have all
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
                dt::copy(contiguous(length), packed + done, bounce.data()) != UCS_OK) {
                return -1;
            }
            uint32_t one = 1;
            size_t moved = length;
            status = original(convertor, &piece, &one, &moved);
            if (status < 0) {
                return status;
            }
            if (on_device && packs && moved != 0 &&
                dt::copy(contiguous(moved), bounce.data(), packed + done) != UCS_OK) {
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
    nc_error("no memory to move GPU memory");
    return -1;
}

}  // namespace cuda_nc::hooks
