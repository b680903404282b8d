#include "ucs/backend/sim/ipc.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <new>
#include <type_traits>

#include "ucs/base/bits.hpp"
#include "ucs/base/file_descriptor.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/shared_descriptors.hpp"
#include "ucs/backend/backends.hpp"
#include "ucs/backend/sim/arena.hpp"

namespace cuda_nc::gpu::sim {
namespace {

constexpr uint64_t magic_and_version = 0x636e5f73696d3032;
constexpr uint64_t magic_of_pieces = 0x636e5f7069656365;

struct handle_content {
    uint64_t magic;
    int32_t pid, fd, device;
    uint32_t id;    // of the allocation: no two have the same handle
    uint64_t file;  // inode: another process may have got the number `pid` in the meantime
    uint64_t offset, size;
};
// Of pieces: what handle_content says goes with the descriptor.
struct pieces_handle {
    uint64_t magic;
    descriptor_ticket ticket;
};
static_assert(sizeof(handle_content) <= ipc_handle_size &&
              sizeof(pieces_handle) <= ipc_handle_size &&
              std::is_trivially_copyable_v<handle_content>);

class imported_memory final : public memory {
  public:
    explicit imported_memory(address_space &space) noexcept : space_(space) {}
    ~imported_memory() override {
        if (address_ != nullptr && !forked()) {
            space_.remove(reinterpret_cast<uintptr_t>(address_));
        }
    }

    bool map(const handle_content &from, int fd) {
        uint64_t first = from.offset / page * page;
        uint64_t end = round_up(from.offset + from.size, page);
        if (!mapping_.map(fd, static_cast<off_t>(first), end - first)) {
            return false;
        }
        region one;
        one.begin = mapping_.view() + (from.offset - first);
        one.end = one.begin + from.size;
        one.alias = mapping_.alias() + (from.offset - first);
        one.kind = memory_kind::device;
        one.device = from.device;
        space_.add(one);
        address_ = reinterpret_cast<char *>(one.begin);
        size_ = from.size;
        return true;
    }

  private:
    address_space &space_;
    double_mapping mapping_;
};

ucs_status_t fail(const handle_content &from, const char *why) noexcept {
    nc_error("simulated GPU: memory of process %d cannot be opened: %s", from.pid, why);
    return UCS_ERR_IO_ERROR;
}

ucs_status_t describe(const region &one, int fd, uint64_t offset,
                      handle_content *content_p) noexcept {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return UCS_ERR_IO_ERROR;
    }
    *content_p = {magic_and_version,
                  getpid(),
                  fd,
                  one.device,
                  static_cast<uint32_t>(one.id),
                  status.st_ino,
                  offset,
                  one.end - one.begin};
    return UCS_OK;
}

template <typename content>
void put(const content &from, ipc_handle *handle_p) noexcept {
    *handle_p = {};
    std::memcpy(handle_p->bytes, &from, sizeof(from));
}

// The file, and what it is to be. `handle` is of pieces.
ucs_status_t take(const ipc_handle &handle, handle_content *from_p,
                  file_descriptor *file_p) noexcept {
    // Without the memory UCX itself would touch that of a simulated GPU, which it cannot.
    constexpr auto patience = std::chrono::seconds(60);
    pieces_handle named;
    std::memcpy(&named, handle.bytes, sizeof(named));
    size_t count = 0;
    return is_own(named.ticket) ? UCS_ERR_UNSUPPORTED
                                : take_descriptors(named.ticket, from_p, sizeof(*from_p), file_p, 1,
                                                   &count, patience);
}

}  // namespace

ucs_status_t export_region(const region &one, int fd, uint64_t offset,
                           ipc_handle *handle_p) noexcept {
    handle_content content;
    const ucs_status_t status = describe(one, fd, offset, &content);
    if (status == UCS_OK) {
        put(content, handle_p);
    }
    return status;
}

ucs_status_t share_region(const region &one, int fd, uint64_t offset, ipc_handle *handle_p,
                          std::shared_ptr<void> *keeper_p) noexcept {
    handle_content content;
    pieces_handle named = {magic_of_pieces, {}};
    ucs_status_t status = describe(one, fd, offset, &content);
    if (status == UCS_OK) {
        const file_descriptor file(dup(fd));
        status = offer_descriptors(&content, sizeof(content), &file, 1, &named.ticket, keeper_p);
    }
    if (status == UCS_OK) {
        put(named, handle_p);
    }
    return status;
}

bool is_of_pieces(const ipc_handle &handle) noexcept {
    uint64_t magic;
    std::memcpy(&magic, handle.bytes, sizeof(magic));
    return magic == magic_of_pieces;
}

ucs_status_t open_region(const ipc_handle &handle, address_space &space,
                         std::unique_ptr<memory> *memory_p) noexcept {
    handle_content from;
    file_descriptor file;
    if (is_of_pieces(handle)) {
        const ucs_status_t status = take(handle, &from, &file);
        if (status != UCS_OK) {
            return status;
        }
    } else {
        std::memcpy(&from, handle.bytes, sizeof(from));
    }
    if (from.magic != magic_and_version || from.pid == getpid()) {
        return UCS_ERR_UNSUPPORTED;
    }
    char path[64];
    std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", from.pid, from.fd);
    if (!file) {
        file = file_descriptor(open(path, O_RDWR | O_CLOEXEC));
    }
    struct stat status;
    if (file.number() < 0 || fstat(file.number(), &status) != 0) {
        return fail(from, std::strerror(errno));
    }
    if (status.st_uid != geteuid()) {
        return fail(from, "it belongs to another user");
    }
    auto file_size = static_cast<uint64_t>(status.st_size);
    if (status.st_ino != from.file || from.size == 0 || from.offset > file_size ||
        from.size > file_size - from.offset) {
        return fail(from, "the handle does not describe it");
    }
    try {
        auto made = std::make_unique<imported_memory>(space);
        if (!made->map(from, file.number())) {
            return UCS_ERR_NO_MEMORY;
        }
        *memory_p = std::move(made);
        return UCS_OK;
    } catch (const std::bad_alloc &) {
        return UCS_ERR_NO_MEMORY;
    }
}

}  // namespace cuda_nc::gpu::sim
