#include "ucp/dt/packed_move.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "ucp/dt/address.hpp"
#include "ucp/dt/device_packer.hpp"
#include "ucp/dt/request_state.hpp"
#include "ucp/dt/shape_text.hpp"
#include "ucs/base/statistics.hpp"

namespace cuda_nc::dt {
namespace {

using gpu::is_on_host;
using gpu::memory_kind;

// Whether the GPU that holds the laid-out bytes reaches `length` packed ones.
bool is_reached(const gpu::memory_info &laid_out, const packed_place &packed,
                uint64_t length) noexcept {
    const gpu::memory_info &first = packed.lies;
    return gpu::is_on_gpu(laid_out.kind) &&
           (first.kind == memory_kind::pinned ||
            (gpu::is_on_gpu(first.kind) && first.device == laid_out.device)) &&
           gpu::are_alike(first, gpu::platform::instance().query(packed.start + length - 1));
}

void count(gpu::direction dir, const layout &what, uint64_t length, bool in_host_memory) noexcept {
    if (statistics_enabled()) {
        try {
            count_message_slow(
                dir == gpu::direction::pack ? "pack" : "unpack", shape_text(what.view()),
                "GPU kernel",
                in_host_memory ? "packed bytes in pinned memory" : "packed bytes on the same GPU",
                length);
        } catch (...) {
            // a lost count harms nobody
        }
    }
}

// By the GPU that reaches both sides. After an error nothing of it runs any more, and bytes may be
// there or not.
ucs_status_t move_by_gpu(gpu::direction dir, const layout_ref &what, const void *base,
                         const gpu::memory_info &laid_out, const packed_place &packed,
                         uint64_t length) noexcept {
    device_packer packer;
    ucs_status_t status = packer.open(dir, layout_ref(what), displaced(base, 0), laid_out);
    if (status == UCS_OK) {
        status = packer.move_packed(length, packed.start, packed.lies.kind);
        packer.close();
        if (status == UCS_OK) {
            count(dir, *what, length, is_on_host(packed.lies.kind));
        }
    }
    return status;
}

// Calls move(piece, offset, bytes) for pieces of host memory until `length` bytes are moved.
template <typename F>
ucs_status_t in_pieces(uint64_t length, const F &move) noexcept {
    constexpr uint64_t most = 256 << 10;
    const uint64_t size = std::min(most, length);
    std::unique_ptr<char, decltype(&std::free)> piece(static_cast<char *>(std::malloc(size)),
                                                      &std::free);
    ucs_status_t status = piece != nullptr ? UCS_OK : UCS_ERR_NO_MEMORY;
    for (uint64_t done = 0; done < length && status == UCS_OK;) {
        const uint64_t now = std::min(size, length - done);
        status = move(piece.get(), done, now);
        done += now;
    }
    return status;
}

// Between host memory and packed bytes on a GPU.
ucs_status_t copy_bytes(const void *from, void *to, uint64_t length) noexcept try {
    return copy(one_block(length), from, to);
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

}  // namespace

packed_place packed_place_at(void *start) noexcept {
    return {static_cast<char *>(start), gpu::platform::instance().query(start)};
}

ucs_status_t pack_all(const layout_ref &what, const void *base, const packed_place &to) noexcept {
    const uint64_t size = what->packed_size();
    const gpu::memory_info laid_out = memory_of(*what, base);
    if (size == 0 ||
        (is_reached(laid_out, to, size) &&
         move_by_gpu(gpu::direction::pack, what, base, laid_out, to, size) == UCS_OK)) {
        return UCS_OK;
    }
    request_state *state = request_state::start_pack(what, base, laid_out);
    if (state == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    ucs_status_t status = UCS_OK;
    if (is_on_host(to.lies.kind)) {
        for (uint64_t done = 0; done < size;) {
            done += state->pack(done, to.start + done, SIZE_MAX);
        }
    } else {
        status = in_pieces(size, [&](char *piece, uint64_t offset, uint64_t length) {
            for (uint64_t done = 0; done < length;) {
                done += state->pack(offset + done, piece + done, length - done);
            }
            return copy_bytes(piece, to.start + offset, length);
        });
    }
    state->finish();
    return status;
}

ucs_status_t unpack_first(const layout_ref &what, void *base, const packed_place &from,
                          uint64_t length) noexcept {
    const gpu::memory_info laid_out = memory_of(*what, base);
    if (length == 0 ||
        (is_reached(laid_out, from, length) &&
         move_by_gpu(gpu::direction::unpack, what, base, laid_out, from, length) == UCS_OK)) {
        return UCS_OK;
    }
    request_state *state = request_state::start_unpack(what, base, laid_out);
    if (state == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    ucs_status_t status;
    if (is_on_host(from.lies.kind)) {
        status = state->unpack(0, from.start, length);
    } else {
        status = in_pieces(length, [&](char *piece, uint64_t offset, uint64_t now) {
            const ucs_status_t copied = copy_bytes(from.start + offset, piece, now);
            return copied == UCS_OK ? state->unpack(offset, piece, now) : copied;
        });
    }
    state->finish();
    return status;
}

}  // namespace cuda_nc::dt
