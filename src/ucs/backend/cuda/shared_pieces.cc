#include "ucs/backend/cuda/shared_pieces.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "ucs/backend/backends.hpp"
#include "ucs/backend/cuda/errors.hpp"
#include "ucs/base/file_descriptor.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/trace.hpp"

namespace cuda_nc::gpu::cuda {
namespace {

// The same on all architectures; headers of older systems lack them.
constexpr long open_pidfd = 434, get_fd = 438;

// Linux passes no more descriptors in one message.
constexpr size_t most_pieces = 253;

constexpr std::array<uint64_t, 2> mark = {0x6e635f7069656365, 0xd3c1f5a86b27e940};

struct handle_content {
    std::array<uint64_t, 2> mark;
    uint64_t number;  // random: tells the socket from others
    uint64_t size;
    int32_t process, socket;
};
static_assert(sizeof(handle_content) <= ipc_handle_size);

// What waits in the socket, with a descriptor for each piece.
struct piece_list {
    uint64_t number;
    uint64_t num_pieces;
    std::array<uint64_t, most_pieces> sizes;
};

struct pieces {
    piece_list list = {};
    std::array<file_descriptor, most_pieces> files;
};

// A message with the pieces' descriptors, to send or to receive.
class descriptor_message {
  public:
    explicit descriptor_message(piece_list &list) noexcept : bytes_{&list, sizeof(list)} {
        head.msg_iov = &bytes_;
        head.msg_iovlen = 1;
        head.msg_control = control_;
        head.msg_controllen = sizeof(control_);
    }

    void put(const pieces &all) noexcept {
        const size_t bytes = all.list.num_pieces * sizeof(int);
        head.msg_controllen = CMSG_SPACE(bytes);
        cmsghdr *const part = CMSG_FIRSTHDR(&head);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(bytes);
        for (size_t i = 0; i < all.list.num_pieces; ++i) {
            const int number = all.files[i].number();
            std::memcpy(CMSG_DATA(part) + i * sizeof(int), &number, sizeof(int));
        }
    }
    // How many there were; `files` owns them.
    size_t take(std::array<file_descriptor, most_pieces> &files) noexcept {
        size_t taken = 0;
        for (cmsghdr *part = CMSG_FIRSTHDR(&head); part != nullptr;
             part = CMSG_NXTHDR(&head, part)) {
            if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
                continue;
            }
            const size_t number = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (size_t i = 0; i < number && taken < most_pieces; ++i) {
                int descriptor;
                std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
                files[taken++] = file_descriptor(descriptor);
            }
        }
        return taken;
    }

    msghdr head = {};

  private:
    iovec bytes_;
    alignas(cmsghdr) char control_[CMSG_SPACE(most_pieces * sizeof(int))] = {};
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

// Descriptors that wait in sockets count against a limit of the user's, which is that of open
// files: a process takes a quarter of it at most.
std::atomic<size_t> waiting_pieces{0};

bool may_wait(size_t number) noexcept {
    rlimit files = {};
    return getrlimit(RLIMIT_NOFILE, &files) == 0 && waiting_pieces + number <= files.rlim_cur / 4;
}

struct waiting_socket {
    waiting_socket(file_descriptor all, size_t pieces) noexcept
        : reader(std::move(all)), number(pieces) {
        waiting_pieces += number;
    }
    ~waiting_socket() { waiting_pieces -= number; }
    waiting_socket(const waiting_socket &) = delete;
    waiting_socket &operator=(const waiting_socket &) = delete;

    const file_descriptor reader;
    const size_t number;
};

// A duplicate of another process's descriptor.
file_descriptor take_descriptor(int process, int number) noexcept {
    const file_descriptor there(static_cast<int>(syscall(open_pidfd, process, 0)));
    file_descriptor taken(there ? static_cast<int>(syscall(get_fd, there.number(), number, 0))
                                : -1);
    if (!taken) {
        nc_debug("memory made of pieces: no descriptor can be had from process %d (%s)", process,
                 std::strerror(errno));
    }
    return taken;
}

// False: it is not what the handle says.
bool read_pieces(const handle_content &from, pieces *all) noexcept {
    const file_descriptor socket = take_descriptor(from.process, from.socket);
    if (!socket) {
        return false;
    }
    descriptor_message message(all->list);
    const ssize_t got =
        recvmsg(socket.number(), &message.head, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const size_t number = got < 0 ? 0 : message.take(all->files);
    uint64_t size = 0;
    if (got != sizeof(all->list) || (message.head.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
        all->list.number != from.number || number == 0 || all->list.num_pieces != number) {
        return false;
    }
    for (size_t i = 0; i < number; ++i) {
        if (__builtin_add_overflow(size, all->list.sizes[i], &size)) {
            return false;
        }
    }
    return size == from.size;
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
    int ends[2];
    if (!may_wait(all->list.num_pieces) ||
        getrandom(&all->list.number, sizeof(all->list.number), GRND_NONBLOCK) !=
            static_cast<ssize_t>(sizeof(all->list.number)) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        nc_debug("memory made of pieces is not shared: too many are, or there is no descriptor");
        return UCS_ERR_NO_RESOURCE;
    }
    const file_descriptor writer(ends[0]);
    file_descriptor reader(ends[1]);
    const int socket = ends[1];
    descriptor_message message(all->list);
    message.put(*all);
    if (sendmsg(writer.number(), &message.head, MSG_DONTWAIT | MSG_NOSIGNAL) !=
        static_cast<ssize_t>(sizeof(all->list))) {
        nc_debug("memory made of pieces is not shared: %s", std::strerror(errno));
        return UCS_ERR_NO_RESOURCE;
    }
    const handle_content content = {mark, all->list.number, size, getpid(), socket};
    *handle_p = {};
    std::memcpy(handle_p->bytes, &content, sizeof(content));
    *keeper_p = std::make_shared<waiting_socket>(std::move(reader), all->list.num_pieces);
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
    if (!owner.calls().shares_pieces() || from.process <= 0 || from.process == getpid() ||
        from.socket < 0) {
        return UCS_ERR_UNSUPPORTED;
    }
    auto all = std::make_unique<pieces>();
    if (!read_pieces(from, all.get())) {
        nc_debug("memory made of pieces of process %d is not shared with us", from.process);
        return UCS_ERR_UNSUPPORTED;
    }
    auto made = std::make_unique<mapped_pieces>(owner);
    const ucs_status_t status = made->map(*all, from.size);
    if (status == UCS_OK) {
        *memory_p = std::move(made);
    }
    return status;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

}  // namespace cuda_nc::gpu::cuda
