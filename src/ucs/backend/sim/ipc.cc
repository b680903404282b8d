#include "ucs/backend/sim/ipc.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <new>
#include <type_traits>

#include "ucs/base/bits.hpp"
#include "ucs/base/file_descriptor.hpp"
#include "ucs/base/log.hpp"
#include "ucs/backend/backends.hpp"
#include "ucs/backend/sim/arena.hpp"

namespace cuda_nc::gpu::sim {
namespace {

constexpr uint64_t magic_and_version = 0x636e5f73696d3031;

struct handle_content {
    uint64_t magic;
    int32_t pid, fd, device;
    uint32_t id;    // of the allocation: no two have the same handle
    uint64_t file;  // inode: another process may have got the number `pid` in the meantime
    uint64_t offset, size;
    uint64_t is_of_pieces;
};
static_assert(sizeof(handle_content) <= ipc_handle_size &&
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

}  // namespace

ucs_status_t export_region(const region &one, int fd, uint64_t offset,
                           ipc_handle *handle_p) noexcept {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return UCS_ERR_IO_ERROR;
    }
    handle_content content = {};
    content.magic = magic_and_version;
    content.pid = getpid();
    content.fd = fd;
    content.device = one.device;
    content.id = static_cast<uint32_t>(one.id);
    content.file = status.st_ino;
    content.offset = offset;
    content.size = one.end - one.begin;
    content.is_of_pieces = one.piece != 0 ? 1 : 0;
    std::memset(handle_p, 0, sizeof(*handle_p));
    std::memcpy(handle_p->bytes, &content, sizeof(content));
    return UCS_OK;
}

bool is_of_pieces(const ipc_handle &handle) noexcept {
    handle_content from;
    std::memcpy(&from, handle.bytes, sizeof(from));
    return from.magic == magic_and_version && from.is_of_pieces != 0;
}

ucs_status_t open_region(const ipc_handle &handle, address_space &space,
                         std::unique_ptr<memory> *memory_p) noexcept {
    handle_content from;
    std::memcpy(&from, handle.bytes, sizeof(from));
    if (from.magic != magic_and_version || from.pid == getpid()) {
        return UCS_ERR_UNSUPPORTED;
    }
    char path[64];
    std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", from.pid, from.fd);
    file_descriptor file(open(path, O_RDWR | O_CLOEXEC));
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
