#include "ucs/gpu/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <new>

#include "ucs/base/bits.hpp"
#include "ucs/base/file_descriptor.hpp"

namespace cuda_nc::gpu {
namespace {

// The file's size cannot change while anybody has it mapped.
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

struct handle_content {
    uint64_t kind;
    uint64_t size;
    uint64_t inode;  // a descriptor's number is used again
    int32_t process, file;
};
static_assert(sizeof(handle_content) <= ipc_handle_size);
constexpr uint64_t shared_kind = 0x6e635f73686d656d;

class shared_memory final : public memory {
  public:
    // `kept` stays open while this lives, so that others can open it; it may be none.
    explicit shared_memory(file_descriptor kept) noexcept : kept_(std::move(kept)) {}
    ~shared_memory() override {
        pinned_.reset();
        if (address_ != nullptr) {
            munmap(address_, size_);
        }
    }

    // Of file `number`; -1: of none.
    ucs_status_t map(device &where, int number, size_t size) noexcept {
        const int flags = MAP_SHARED | (number < 0 ? MAP_ANONYMOUS : 0);
        void *mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, number, 0);
        if (mapping == MAP_FAILED) {
            return UCS_ERR_NO_MEMORY;
        }
        address_ = static_cast<char *>(mapping);
        size_ = size;
        return where.pin(mapping, size, &pinned_);
    }

  private:
    const file_descriptor kept_;
    std::unique_ptr<memory> pinned_;
};

size_t whole_pages(size_t size) noexcept {
    return round_up(size, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

}  // namespace

ucs_status_t make_shared_memory(device &where, size_t size, std::unique_ptr<memory> *memory_p,
                                ipc_handle *handle_p) noexcept {
    file_descriptor made(memfd_create("cuda_nc", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    size = whole_pages(size == 0 ? 1 : size);
    struct stat status;
    if (made.number() < 0 || fchmod(made.number(), S_IRUSR | S_IWUSR) != 0 ||
        ftruncate(made.number(), static_cast<off_t>(size)) != 0 ||
        fcntl(made.number(), F_ADD_SEALS, seals) != 0 || fstat(made.number(), &status) != 0) {
        return UCS_ERR_NO_MEMORY;
    }
    const int number = made.number();
    std::unique_ptr<shared_memory> result(new (std::nothrow) shared_memory(std::move(made)));
    if (result == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    ucs_status_t mapped = result->map(where, number, size);
    if (mapped != UCS_OK) {
        return mapped;
    }
    handle_content content = {shared_kind, size, status.st_ino, getpid(), number};
    *handle_p = {};
    std::memcpy(handle_p->bytes, &content, sizeof(content));
    *memory_p = std::move(result);
    return UCS_OK;
}

ucs_status_t make_lasting_memory(device &where, size_t size,
                                 std::unique_ptr<memory> *memory_p) noexcept {
    std::unique_ptr<shared_memory> made(new (std::nothrow) shared_memory(file_descriptor()));
    if (made == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    const ucs_status_t mapped = made->map(where, -1, whole_pages(size == 0 ? 1 : size));
    if (mapped == UCS_OK) {
        *memory_p = std::move(made);
    }
    return mapped;
}

ucs_status_t open_shared_memory(device &where, const ipc_handle &handle,
                                std::unique_ptr<memory> *memory_p) noexcept {
    handle_content content;
    std::memcpy(&content, handle.bytes, sizeof(content));
    if (content.kind != shared_kind || content.process <= 0 || content.file < 0) {
        return UCS_ERR_UNSUPPORTED;
    }
    char name[64];
    std::snprintf(name, sizeof(name), "/proc/%d/fd/%d", content.process, content.file);
    file_descriptor seen(
        open(name, O_PATH | O_CLOEXEC));  // O_PATH: nothing is opened before it is checked
    struct stat status;
    if (seen.number() < 0 || fstat(seen.number(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_uid != geteuid() || status.st_ino != content.inode ||
        static_cast<uint64_t>(status.st_size) != content.size || content.size == 0) {
        return UCS_ERR_UNSUPPORTED;
    }
    std::snprintf(name, sizeof(name), "/proc/self/fd/%d", seen.number());
    file_descriptor opened(open(name, O_RDWR | O_CLOEXEC));
    if (opened.number() < 0 || (fcntl(opened.number(), F_GET_SEALS) & seals) != seals) {
        return UCS_ERR_UNSUPPORTED;
    }
    const int number = opened.number();
    std::unique_ptr<shared_memory> result(new (std::nothrow) shared_memory(file_descriptor()));
    if (result == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    ucs_status_t mapped = result->map(where, number, static_cast<size_t>(content.size));
    if (mapped == UCS_OK) {
        *memory_p = std::move(result);
    }
    return mapped;
}

}  // namespace cuda_nc::gpu
