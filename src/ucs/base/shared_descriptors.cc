#include "ucs/base/shared_descriptors.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "ucs/base/blocked_signals.hpp"
#include "ucs/base/given_up.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/random_number.hpp"

namespace cuda_nc {
namespace {

using wait_clock = std::chrono::steady_clock;

constexpr auto time_to_ask = std::chrono::seconds(1);  // after the connection is there
constexpr auto time_of_silence = std::chrono::seconds(10);

using offer_number = std::pair<uint64_t, uint64_t>;

struct request {
    uint64_t number[2];
};

enum class verdict : uint32_t { unknown, no_descriptors, with_descriptors };

struct answer {
    verdict what;
    uint32_t count, size;
    char about[most_shared_bytes];

    size_t bytes() const noexcept { return offsetof(answer, about) + size; }
};

offer_number number_of(const uint64_t (&words)[2]) noexcept {
    return {words[0], words[1]};
}

// One message: bytes and descriptors.
class packet {
  public:
    packet(void *bytes, size_t size) noexcept : bytes_{bytes, size} {
        head_.msg_iov = &bytes_;
        head_.msg_iovlen = 1;
    }

    void put(const std::vector<file_descriptor> &files) noexcept {
        const size_t size = files.size() * sizeof(int);
        head_.msg_control = control_;
        head_.msg_controllen = CMSG_SPACE(size);
        cmsghdr *const part = CMSG_FIRSTHDR(&head_);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(size);
        for (size_t i = 0; i < files.size(); ++i) {
            const int number = files[i].number();
            std::memcpy(CMSG_DATA(part) + i * sizeof(int), &number, sizeof(int));
        }
    }

    // False: errno tells.
    bool send(int socket) noexcept {
        return sendmsg(socket, &head_, MSG_DONTWAIT | MSG_NOSIGNAL) ==
               static_cast<ssize_t>(bytes_.iov_len);
    }

    // Bytes got, 0 at the end; -1: errno tells. take_files() must follow.
    ssize_t receive(int socket) noexcept {
        head_.msg_control = control_;
        head_.msg_controllen = sizeof(control_);
        return recvmsg(socket, &head_, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    }
    // Those beyond `most` are closed.
    size_t take_files(file_descriptor *files, size_t most) noexcept {
        size_t taken = 0;
        for (cmsghdr *part = CMSG_FIRSTHDR(&head_); part != nullptr;
             part = CMSG_NXTHDR(&head_, part)) {
            if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
                continue;
            }
            const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (size_t i = 0; i < count; ++i) {
                int number;
                std::memcpy(&number, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
                file_descriptor one(number);
                if (taken < most) {
                    files[taken++] = std::move(one);
                }
            }
        }
        return taken;
    }
    bool was_cut() const noexcept { return (head_.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0; }

  private:
    msghdr head_ = {};
    iovec bytes_;
    alignas(cmsghdr) char control_[CMSG_SPACE(most_shared_descriptors * sizeof(int))] = {};
};

socklen_t name_of(uint64_t service, sockaddr_un *name_p) noexcept {
    *name_p = {};
    name_p->sun_family = AF_UNIX;
    // The first byte of an abstract name is 0.
    const int length = std::snprintf(name_p->sun_path + 1, sizeof(name_p->sun_path) - 1,
                                     "ucx_cuda_nc.%016" PRIx64, service);
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                  static_cast<size_t>(length));
}

file_descriptor make_socket() noexcept {
    return file_descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Who connected, or listens at, the other end, as the kernel noted it then.
bool is_of_this_user(int connection) noexcept {
    constexpr uid_t not_mapped = 65534;
    ucred who = {};
    socklen_t size = sizeof(who);
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
           who.uid == geteuid() && who.uid != not_mapped;
}

// Milliseconds until then, at least 0.
int left_until(wait_clock::time_point deadline) noexcept {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - wait_clock::now());
    return static_cast<int>(std::max<decltype(left)::rep>(left.count(), 0));
}

// Descriptors of all offers: a process has a quarter of what it may open here, at most.
std::atomic<size_t> offered{0};

class counted_files {
  public:
    explicit counted_files(size_t count) noexcept : count_(count) {
        const size_t before = offered.fetch_add(count);
        rlimit files = {};
        const size_t all =
            getrlimit(RLIMIT_NOFILE, &files) == 0 ? static_cast<size_t>(files.rlim_cur) : 0;
        status_ = count > all / 4            ? UCS_ERR_EXCEEDS_LIMIT
                  : before + count > all / 4 ? UCS_ERR_NO_RESOURCE
                                             : UCS_OK;
        first_number_ = static_cast<int>(std::min<size_t>(all / 2, 4096));
    }
    ~counted_files() { offered -= count_; }
    counted_files(const counted_files &) = delete;
    counted_files &operator=(const counted_files &) = delete;

    ucs_status_t status() const noexcept { return status_; }
    // Programs that use select() need the low numbers.
    int first_number() const noexcept { return first_number_; }

  private:
    const size_t count_;
    ucs_status_t status_;
    int first_number_;
};

struct kept_offer;

// Of one process. Never destroyed: its thread uses it until the process ends.
class service {
  public:
    // That of this process, started if need be; null: it cannot be.
    static service *get() noexcept;
    static service *known() noexcept {
        service *one = only.load(std::memory_order_acquire);
        return one != nullptr && one->is_of_this_process() ? one : nullptr;
    }

    bool is_of_this_process() const noexcept { return process_ == getpid(); }
    uint64_t name() const noexcept { return name_; }
    void add(const offer_number &number, const kept_offer &one) {
        std::lock_guard<std::mutex> guard(mutex_);
        offers_.emplace(number, &one);
    }
    void remove(const offer_number &number) noexcept {
        std::lock_guard<std::mutex> guard(mutex_);
        offers_.erase(number);
    }

  private:
    // Somebody of this user who has connected, and not asked yet.
    struct asker {
        file_descriptor connection;
        wait_clock::time_point until;
    };

    bool start() noexcept;
    void run() noexcept;
    bool socket_is_ours() const noexcept;
    void accept_one() noexcept;
    void hear(asker &from) noexcept;
    void reply(int connection, const offer_number &number) noexcept;

    static std::atomic<service *> only;

    const pid_t process_ = getpid();
    const uint64_t name_ = random_number();
    file_descriptor socket_;
    static constexpr size_t most_askers = 16;
    std::array<asker, most_askers> askers_;
    std::mutex mutex_;
    std::map<offer_number, const kept_offer *> offers_;
};

std::atomic<service *> service::only{nullptr};

// An offer, which ends with this.
struct kept_offer {
    explicit kept_offer(size_t count) noexcept : counted(count) {}
    ~kept_offer() {
        if (owner != nullptr && owner->is_of_this_process()) {  // not in a child after fork()
            owner->remove(number);                              // before the files are closed
        }
    }
    kept_offer(const kept_offer &) = delete;
    kept_offer &operator=(const kept_offer &) = delete;

    const counted_files counted;
    offer_number number;
    std::vector<char> about;
    std::vector<file_descriptor> files;
    service *owner = nullptr;
};

service *service::get() noexcept try {
    static auto *starting = new std::mutex;
    if (service *one = known(); one != nullptr && one->socket_is_ours()) {
        return one;
    }
    std::lock_guard<std::mutex> guard(*starting);
    if (service *one = known(); one != nullptr && one->socket_is_ours()) {
        return one;
    }
    auto made = std::make_unique<service>();
    if (!made->start()) {
        return nullptr;
    }
    service *const one = made.release();  // one that was before may be in use
    if (const service *before = only.exchange(one, std::memory_order_acq_rel)) {
        give_up_for_ever(before);
    }
    return one;
} catch (const std::bad_alloc &) {
    return nullptr;
}

bool service::start() noexcept {
    constexpr int backlog = 64;
    sockaddr_un name;
    const socklen_t length = name_of(name_, &name);
    socket_ = make_socket();
    if (!socket_ ||
        bind(socket_.number(), reinterpret_cast<const sockaddr *>(&name), length) != 0 ||
        listen(socket_.number(), backlog) != 0) {
        nc_debug("descriptors are not shared: there is no socket (%s)", std::strerror(errno));
        return false;
    }
    const all_signals_blocked blocked;
    pthread_t thread;
    const int made = pthread_create(
        &thread, nullptr,
        [](void *self) -> void * {
            static_cast<service *>(self)->run();
            return nullptr;
        },
        this);
    if (made != 0) {
        nc_debug("descriptors are not shared: there is no thread (%s)", std::strerror(made));
        return false;
    }
    pthread_detach(thread);
    return true;
}

// A program may close descriptors that it does not know, and use their numbers again. Then the next
// offer starts another service.
bool service::socket_is_ours() const noexcept {
    sockaddr_un name, here;
    const socklen_t length = name_of(name_, &name);
    socklen_t found = sizeof(here);
    return getsockname(socket_.number(), reinterpret_cast<sockaddr *>(&here), &found) == 0 &&
           found == length && std::memcmp(&name, &here, length) == 0;
}

void service::run() noexcept {
    pthread_setname_np(pthread_self(), "cuda_nc_share");
    while (socket_is_ours()) {
        std::array<pollfd, most_askers + 1> ready;
        const auto now = wait_clock::now();
        int wait = -1;
        for (size_t i = 0; i < askers_.size(); ++i) {
            const asker &one = askers_[i];
            if (one.connection) {
                const int left = one.until > now ? left_until(one.until) + 1 : 0;
                wait = wait < 0 ? left : std::min(wait, left);
            }
            ready[i] = {one.connection.number(), POLLIN, 0};  // poll() passes over -1
        }
        ready.back() = {socket_.number(), POLLIN, 0};
        if (poll(ready.data(), ready.size(), wait) < 0) {
            continue;
        }
        for (size_t i = 0; i < askers_.size(); ++i) {
            if (ready[i].revents != 0) {
                hear(askers_[i]);  // who has asked in time is heard, however late this thread is
            } else if (askers_[i].until <= now) {
                askers_[i].connection = file_descriptor();
            }
        }
        if (ready.back().revents != 0 && socket_is_ours()) {
            accept_one();
        }
    }
}

void service::accept_one() noexcept {
    file_descriptor made(accept4(socket_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!made) {
        const timespec a_while = {0, 1000000};  // no descriptors left, perhaps
        nanosleep(&a_while, nullptr);
        return;
    }
    if (!is_of_this_user(made.number())) {
        return;
    }
    // A free place, or that of who has waited longest.
    asker *place = &askers_[0];
    for (asker &one : askers_) {
        if (place->connection && (!one.connection || one.until < place->until)) {
            place = &one;
        }
    }
    place->connection = std::move(made);
    place->until = wait_clock::now() + time_to_ask;
}

void service::hear(asker &from) noexcept {
    request asked;
    packet message(&asked, sizeof(asked));
    const ssize_t got = message.receive(from.connection.number());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got >= 0) {
        message.take_files(nullptr, 0);
    }
    if (got == sizeof(asked) && !message.was_cut()) {
        reply(from.connection.number(), number_of(asked.number));
    }
    from.connection = file_descriptor();
}

// Does not wait: the new connection has room for one answer.
void service::reply(int connection, const offer_number &number) noexcept {
    answer said;
    said.what = verdict::unknown;
    said.count = said.size = 0;
    std::lock_guard<std::mutex> guard(mutex_);
    const auto found = offers_.find(number);
    if (found != offers_.end()) {
        const kept_offer &one = *found->second;
        said.what = verdict::with_descriptors;
        said.count = static_cast<uint32_t>(one.files.size());
        said.size = static_cast<uint32_t>(one.about.size());
        std::memcpy(said.about, one.about.data(), one.about.size());
        packet message(&said, said.bytes());
        message.put(one.files);
        if (message.send(connection)) {
            return;
        }
        nc_debug("descriptors cannot be given: %s", std::strerror(errno));
        said.what = verdict::no_descriptors;  // too many of the user's are under way, for instance
        said.count = said.size = 0;
    }
    packet(&said, said.bytes()).send(connection);
}

// Services that did not answer, and until when they are not asked.
class silent_services {
  public:
    bool has(uint64_t service) noexcept {
        std::lock_guard<std::mutex> guard(mutex_);
        for (const entry &one : all_) {
            if (one.service == service && one.until > wait_clock::now()) {
                return true;
            }
        }
        return false;
    }
    void add(uint64_t service) noexcept {
        std::lock_guard<std::mutex> guard(mutex_);
        all_[next_++ % all_.size()] = {service, wait_clock::now() + time_of_silence};
    }

  private:
    struct entry {
        uint64_t service = 0;
        wait_clock::time_point until = {};
    };
    std::mutex mutex_;
    std::array<entry, 64> all_;
    size_t next_ = 0;
};

silent_services &silent() noexcept {
    static auto *all = new silent_services;  // outlives every thread
    return *all;
}

// Null: *status_p tells why.
file_descriptor connect_to(uint64_t service, wait_clock::time_point deadline,
                           ucs_status_t *status_p) noexcept {
    sockaddr_un owner;
    const socklen_t length = name_of(service, &owner);
    file_descriptor made = make_socket();
    if (!made) {
        *status_p = UCS_ERR_NO_RESOURCE;
        return made;
    }
    while (connect(made.number(), reinterpret_cast<const sockaddr *>(&owner), length) != 0) {
        const int why = errno;
        const bool busy = why == EAGAIN || why == EINTR;  // others wait to be accepted
        if (!busy || left_until(deadline) == 0) {
            *status_p = busy ? UCS_ERR_TIMED_OUT : UCS_ERR_NO_ELEM;
            return file_descriptor();
        }
        const timespec a_while = {0, 1000000};
        nanosleep(&a_while, nullptr);
    }
    if (!is_of_this_user(made.number())) {
        *status_p = UCS_ERR_NO_ELEM;
        return file_descriptor();
    }
    return made;
}

ucs_status_t ask(const descriptor_ticket &from, void *about, size_t size, file_descriptor *files,
                 size_t most, size_t *count_p, std::chrono::milliseconds longest) noexcept {
    const auto deadline = wait_clock::now() + longest;
    ucs_status_t status = UCS_OK;
    const file_descriptor connection = connect_to(from.service, deadline, &status);
    if (!connection) {
        return status;
    }
    request wanted = {{from.number[0], from.number[1]}};
    if (!packet(&wanted, sizeof(wanted)).send(connection.number())) {
        return UCS_ERR_NO_ELEM;  // it has hung up
    }
    answer said;
    packet message(&said, sizeof(said));
    ssize_t got;
    while ((got = message.receive(connection.number())) < 0 &&
           (errno == EAGAIN || errno == EINTR)) {
        const int left = left_until(deadline);
        if (left == 0) {
            return UCS_ERR_TIMED_OUT;
        }
        pollfd one = {connection.number(), POLLIN, 0};
        poll(&one, 1, left);
    }
    if (got <= 0) {
        return UCS_ERR_NO_ELEM;
    }
    const size_t count = message.take_files(files, most);
    const bool whole = static_cast<size_t>(got) >= offsetof(answer, about) &&
                       said.size <= most_shared_bytes && static_cast<size_t>(got) == said.bytes();
    status = UCS_ERR_NO_ELEM;
    if (whole && (said.what == verdict::no_descriptors || message.was_cut())) {
        status = UCS_ERR_NO_RESOURCE;
    } else if (whole && said.what == verdict::with_descriptors && said.size == size &&
               said.count == count && count != 0) {
        std::memcpy(about, said.about, size);
        *count_p = count;
        return UCS_OK;
    }
    for (size_t i = 0; i < count; ++i) {
        files[i] = file_descriptor();
    }
    return status;
}

}  // namespace

ucs_status_t offer_descriptors(const void *about, size_t size, const file_descriptor *files,
                               size_t count, descriptor_ticket *ticket_p,
                               std::shared_ptr<void> *keeper_p) noexcept try {
    if (size > most_shared_bytes || count == 0 || count > most_shared_descriptors) {
        return UCS_ERR_INVALID_PARAM;
    }
    auto made = std::make_shared<kept_offer>(count);
    if (made->counted.status() != UCS_OK) {
        nc_debug("%zu descriptors are not shared: they would be too many", count);
        return made->counted.status();
    }
    service *const owner = service::get();
    uint64_t number[2];
    if (owner == nullptr || getrandom(number, sizeof(number), GRND_NONBLOCK) != sizeof(number)) {
        return UCS_ERR_IO_ERROR;
    }
    made->number = number_of(number);
    made->about.assign(static_cast<const char *>(about), static_cast<const char *>(about) + size);
    made->files.reserve(count);
    for (size_t i = 0; i < count; ++i) {
        made->files.emplace_back(
            fcntl(files[i].number(), F_DUPFD_CLOEXEC, made->counted.first_number()));
        if (!made->files.back()) {
            const int why = errno;
            nc_debug("%zu descriptors are not shared: %s", count, std::strerror(why));
            return why == EMFILE ? UCS_ERR_NO_RESOURCE : UCS_ERR_IO_ERROR;
        }
    }
    owner->add(made->number, *made);
    made->owner = owner;
    *ticket_p = {owner->name(), {number[0], number[1]}};
    *keeper_p = std::move(made);
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

ucs_status_t take_descriptors(const descriptor_ticket &from, void *about, size_t size,
                              file_descriptor *files, size_t most, size_t *count_p,
                              std::chrono::milliseconds longest) noexcept {
    if (silent().has(from.service)) {
        return UCS_ERR_TIMED_OUT;
    }
    const ucs_status_t status = ask(from, about, size, files, most, count_p, longest);
    if (status == UCS_ERR_TIMED_OUT) {
        silent().add(from.service);
    }
    if (status != UCS_OK) {
        nc_debug("descriptors are not had from their owner: %s", status_text(status));
    }
    return status;
}

bool is_own(const descriptor_ticket &ticket) noexcept {
    service *const one = service::known();
    return one != nullptr && one->name() == ticket.service;
}

}  // namespace cuda_nc
