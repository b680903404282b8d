#include "ucs/backend/cuda/shared_pieces.hpp"

#include <fcntl.h>

#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "ucs/backend/backends.hpp"
#include "ucs/backend/cuda/errors.hpp"
#include "ucs/base/file_descriptor.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/shared_descriptors.hpp"
#include "ucs/base/trace.hpp"

namespace cuda_nc::gpu::cuda {
namespace {

constexpr size_t most_pieces = most_shared_descriptors;

constexpr std::array<uint64_t, 2> mark = {0x6e635f7069656365, 0xd3c1f5a86b27e941};

struct handle_content {
    std::array<uint64_t, 2> mark;
    descriptor_ticket ticket;
    uint64_t size;
};
static_assert(sizeof(handle_content) <= ipc_handle_size);

// What goes with the descriptors, one for each piece.
struct piece_list {
    uint64_t num_pieces;
    std::array<uint64_t, most_pieces> sizes;
};
static_assert(sizeof(piece_list) <= most_shared_bytes);

struct pieces {
    piece_list list = {};
    std::array<file_descriptor, most_pieces> files;
};

// The piece that begins at `at`. False: there is none, or it is not shared so.
bool export_piece(const driver &calls, CUdeviceptr at, file_descriptor *file_p,
                  uint64_t *size_p) noexcept {
    CUdeviceptr base = 0;
    size_t size = 0;
    CUmemGenericAllocationHandle piece;
    if (calls.address_range(&base, &size, at) != CUDA_SUCCESS || base != at || size == 0 ||
        calls.retain_piece(&piece, reinterpret_cast<void *>(at)) != CUDA_SUCCESS) {
        return false;
    }
    int number = -1;
    const CUresult exported =
        calls.export_piece(&number, piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    calls.release_piece(piece);
    if (exported != CUDA_SUCCESS) {
        return false;
    }
    fcntl(number, F_SETFD, FD_CLOEXEC);
    *file_p = file_descriptor(number);
    *size_p = size;
    return true;
}

bool export_all(const driver &calls, char *base, size_t size, pieces *all) noexcept {
    const auto begin = reinterpret_cast<CUdeviceptr>(base);
    size_t number = 0;
    for (CUdeviceptr at = begin; at < begin + size; at += all->list.sizes[number++]) {
        if (number == most_pieces ||
            !export_piece(calls, at, &all->files[number], &all->list.sizes[number])) {
            return false;
        }
    }
    all->list.num_pieces = number;
    return true;
}

// Takes the pieces, and checks that they are as the handle says.
ucs_status_t take_pieces(const handle_content &from, pieces *all) noexcept {
    size_t count = 0;
    const ucs_status_t status = take_descriptors(from.ticket, &all->list, sizeof(all->list),
                                                 all->files.data(), most_pieces, &count);
    if (status != UCS_OK) {
        return status;
    }
    uint64_t size = 0;
    bool good = all->list.num_pieces == count;
    for (size_t i = 0; i < count && good; ++i) {
        good = !__builtin_add_overflow(size, all->list.sizes[i], &size);
    }
    return good && size == from.size ? UCS_OK : UCS_ERR_UNSUPPORTED;
}

class mapped_pieces final : public memory {
  public:
    explicit mapped_pieces(primary_context &owner) noexcept : owner_(owner) {}
    ~mapped_pieces() override {
        if (reserved_ == 0 || forked() || !owner_.alive()) {
            return;
        }
        const driver &calls = owner_.calls();
        current_scope scope(calls, owner_.get());
        if (mapped_ != 0) {
            forget(calls.unmap(reserved_, mapped_), "cuMemUnmap");
        }
        forget(calls.free_addresses(reserved_, all_), "cuMemAddressFree");
    }

    ucs_status_t map(const pieces &all, size_t size) noexcept {
        const driver &calls = owner_.calls();
        ucs_status_t status =
            to_status(calls.reserve_addresses(&reserved_, size, 0, 0, 0), "cuMemAddressReserve");
        if (status != UCS_OK) {
            reserved_ = 0;
            return status;
        }
        all_ = size;
        for (size_t i = 0; i < all.list.num_pieces; ++i) {
            status = map_piece(all.files[i].number(), all.list.sizes[i]);
            if (status != UCS_OK) {
                return status;
            }
        }
        CUdevice device;
        CUmemAccessDesc access = {};
        status = to_status(calls.device_get(&device, owner_.ordinal()), "cuDeviceGet");
        access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        if (status == UCS_OK) {
            status = to_status(calls.set_access(reserved_, size, &access, 1), "cuMemSetAccess");
        }
        if (status == UCS_OK) {
            address_ = reinterpret_cast<char *>(reserved_);
            size_ = size;
        }
        return status;
    }

  private:
    static void forget(CUresult result, const char *call) noexcept {
        if (!torn_down(result)) {
            to_status(result, call);  // logs
        }
    }
    // The driver checks that the piece has so many bytes.
    ucs_status_t map_piece(int descriptor, size_t size) noexcept {
        const driver &calls = owner_.calls();
        CUmemGenericAllocationHandle piece;
        if (calls.import_piece(&piece, reinterpret_cast<void *>(static_cast<intptr_t>(descriptor)),
                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS) {
            return UCS_ERR_UNSUPPORTED;
        }
        const CUresult mapped = calls.map(reserved_ + mapped_, size, 0, piece, 0);
        calls.release_piece(piece);  // the mapping keeps it
        if (mapped != CUDA_SUCCESS) {
            return UCS_ERR_UNSUPPORTED;
        }
        mapped_ += size;
        return UCS_OK;
    }

    primary_context &owner_;
    CUdeviceptr reserved_ = 0;
    size_t all_ = 0, mapped_ = 0;
};

}  // namespace

ucs_status_t share_pieces(primary_context &owner, char *base, size_t size, ipc_handle *handle_p,
                          std::shared_ptr<void> *keeper_p) noexcept try {
    const trace_span span("share pieces of memory", size);
    const driver &calls = owner.calls();
    auto all = std::make_unique<pieces>();
    if (!calls.shares_pieces() || size == 0 || !export_all(calls, base, size, all.get())) {
        return UCS_ERR_UNSUPPORTED;
    }
    handle_content content = {mark, {}, size};
    const ucs_status_t status = offer_descriptors(&all->list, sizeof(all->list), all->files.data(),
                                                  all->list.num_pieces, &content.ticket, keeper_p);
    if (status != UCS_OK) {
        return status;
    }
    *handle_p = {};
    std::memcpy(handle_p->bytes, &content, sizeof(content));
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

bool is_of_pieces(const ipc_handle &handle) noexcept {
    return std::memcmp(handle.bytes, mark.data(), sizeof(mark)) == 0;
}

ucs_status_t open_pieces(primary_context &owner, const ipc_handle &handle,
                         std::unique_ptr<memory> *memory_p) noexcept try {
    const trace_span span("open pieces of a peer's memory");
    handle_content from;
    std::memcpy(&from, handle.bytes, sizeof(from));
    if (!owner.calls().shares_pieces() || is_own(from.ticket)) {
        return UCS_ERR_UNSUPPORTED;
    }
    auto all = std::make_unique<pieces>();
    ucs_status_t status = take_pieces(from, all.get());
    if (status != UCS_OK) {
        nc_debug("memory made of pieces is not shared with us: %s", status_text(status));
        return UCS_ERR_UNSUPPORTED;
    }
    auto made = std::make_unique<mapped_pieces>(owner);
    status = made->map(*all, from.size);
    if (status == UCS_OK) {
        *memory_p = std::move(made);
    }
    return status;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

}  // namespace cuda_nc::gpu::cuda
