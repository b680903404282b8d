#include "ucs/base/shared_descriptors.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

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

#include "ucs/base/log.hpp"
#include "ucs/base/random_number.hpp"

namespace cuda_nc {
namespace {

using wait_clock = std::chrono::steady_clock;

constexpr auto longest_wait = std::chrono::seconds(1);

// What is asked for, and the first bytes of an answer.
using offer_number = std::pair<uint64_t, uint64_t>;

struct request {
    uint64_t number[2];
};

// An answer without a body says no; with_descriptors is what waits in an offer's socket.
enum class verdict : uint32_t { unknown, no_descriptors, with_descriptors };

struct answer {
    uint64_t number[2];
    verdict what;
    uint32_t count, size, reserved;
    char about[most_shared_bytes];

    size_t bytes() const noexcept { return offsetof(answer, about) + size; }
};

offer_number number_of(const uint64_t (&words)[2]) noexcept {
    return {words[0], words[1]};
}

// One message: bytes, descriptors, and who has sent it.
class datagram {
  public:
    datagram(void *bytes, size_t size) noexcept : bytes_{bytes, size} {
        head_.msg_iov = &bytes_;
        head_.msg_iovlen = 1;
    }

    void put(const int *files, size_t count) noexcept {
        if (count == 0) {
            return;
        }
        head_.msg_control = control_;
        head_.msg_controllen = CMSG_SPACE(count * sizeof(int));
        cmsghdr *const part = CMSG_FIRSTHDR(&head_);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(count * sizeof(int));
        std::memcpy(CMSG_DATA(part), files, count * sizeof(int));
    }
    void address(sockaddr_un *name, socklen_t length) noexcept {
        head_.msg_name = name;
        head_.msg_namelen = length;
    }
    socklen_t address_length() const noexcept { return head_.msg_namelen; }

    bool send(int socket, int flags) noexcept {
        return sendmsg(socket, &head_, flags | MSG_NOSIGNAL) ==
               static_cast<ssize_t>(bytes_.iov_len);
    }

    // Bytes got; -1: errno tells. take_files() must follow, lest descriptors stay open.
    ssize_t receive(int socket, int flags) noexcept {
        head_.msg_control = control_;
        head_.msg_controllen = sizeof(control_);
        return recvmsg(socket, &head_, flags | MSG_CMSG_CLOEXEC);
    }
    // Those beyond `most` are closed.
    size_t take_files(file_descriptor *files, size_t most) noexcept {
        size_t taken = 0;
        each_part(SCM_RIGHTS, [&](const unsigned char *data, size_t size) {
            for (; size >= sizeof(int); size -= sizeof(int), data += sizeof(int)) {
                int number;
                std::memcpy(&number, data, sizeof(int));
                file_descriptor one(number);
                if (taken < most) {
                    files[taken++] = std::move(one);
                }
            }
        });
        return taken;
    }
    bool was_cut() const noexcept { return (head_.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0; }
    // As the kernel says.
    bool is_from_this_user() noexcept {
        bool same = false;
        each_part(SCM_CREDENTIALS, [&](const unsigned char *data, size_t size) {
            ucred who;
            if (size >= sizeof(who)) {
                std::memcpy(&who, data, sizeof(who));
                same = who.uid == getuid();
            }
        });
        return same;
    }

  private:
    template <typename visitor>
    void each_part(int type, visitor &&visit) noexcept {
        for (cmsghdr *part = CMSG_FIRSTHDR(&head_); part != nullptr;
             part = CMSG_NXTHDR(&head_, part)) {
            if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == type) {
                visit(CMSG_DATA(part), part->cmsg_len - CMSG_LEN(0));
            }
        }
    }

    msghdr head_ = {};
    iovec bytes_;
    alignas(cmsghdr) char control_[CMSG_SPACE(most_shared_descriptors * sizeof(int)) +
                                   CMSG_SPACE(sizeof(ucred))] = {};
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
    file_descriptor made(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    if (made && setsockopt(made.number(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0) {
        return file_descriptor();
    }
    return made;
}

// After a call that failed: waits for the socket where that helps. False: it does not, or it is too
// late. By the clock, as signals may come more often than a second.
bool may_try_again(int socket, short event, wait_clock::time_point deadline) noexcept {
    const int why = errno;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - wait_clock::now());
    if ((why != EAGAIN && why != EINTR) || left.count() <= 0) {
        return false;
    }
    pollfd one = {socket, event, 0};
    poll(&one, 1, static_cast<int>(left.count()));
    return true;
}

// Descriptors that wait in sockets count against a limit of the user's, which is that of open
// files: a process takes a quarter of it at most.
std::atomic<size_t> waiting{0};

// Counts them as waiting for as long as it lives.
class waiting_files {
  public:
    explicit waiting_files(size_t count) noexcept : count_(count) {
        const size_t before = waiting.fetch_add(count);
        rlimit files = {};
        const size_t most =
            getrlimit(RLIMIT_NOFILE, &files) == 0 ? static_cast<size_t>(files.rlim_cur / 4) : 0;
        status_ = count > most            ? UCS_ERR_EXCEEDS_LIMIT
                  : before + count > most ? UCS_ERR_NO_RESOURCE
                                          : UCS_OK;
    }
    ~waiting_files() { waiting -= count_; }
    waiting_files(const waiting_files &) = delete;
    waiting_files &operator=(const waiting_files &) = delete;
    // Whether they may: never, not now, or yes.
    ucs_status_t status() const noexcept { return status_; }

  private:
    const size_t count_;
    ucs_status_t status_;
};

// Of one process. Never destroyed: its thread uses it until the process ends.
class service {
  public:
    // That of this process, started if need be; null: it cannot be.
    static service *get() noexcept;
    static service *known() noexcept {
        service *one = only.load(std::memory_order_acquire);
        return one != nullptr && one->process_ == getpid() ? one : nullptr;
    }

    uint64_t name() const noexcept { return name_; }
    void add(const offer_number &number, int reader) {
        std::lock_guard<std::mutex> guard(mutex_);
        offers_.emplace(number, reader);
    }
    void remove(const offer_number &number) noexcept {
        std::lock_guard<std::mutex> guard(mutex_);
        offers_.erase(number);
    }

  private:
    bool start() noexcept;
    void run() noexcept;
    bool socket_is_ours() const noexcept;
    void reply(const request &asked, sockaddr_un *to, socklen_t length) noexcept;

    static std::atomic<service *> only;

    const pid_t process_ = getpid();
    const uint64_t name_ = random_number();
    file_descriptor socket_;
    std::mutex mutex_;
    std::map<offer_number, int> offers_;  // the sockets where they wait, which the keepers own
};

std::atomic<service *> service::only{nullptr};

service *service::get() noexcept try {
    static auto *starting = new std::mutex;
    if (service *one = known()) {
        return one;
    }
    std::lock_guard<std::mutex> guard(*starting);
    if (service *one = known()) {
        return one;
    }
    auto made = std::make_unique<service>();
    if (!made->start()) {
        return nullptr;
    }
    only.store(made.get(), std::memory_order_release);
    return made.release();
} catch (const std::bad_alloc &) {
    return nullptr;
}

bool service::start() noexcept {
    sockaddr_un name;
    const socklen_t length = name_of(name_, &name);
    socket_ = make_socket();
    if (!socket_ ||
        bind(socket_.number(), reinterpret_cast<const sockaddr *>(&name), length) != 0) {
        nc_debug("descriptors are not shared: there is no socket (%s)", std::strerror(errno));
        return false;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const int made = pthread_create(
        &thread, nullptr,
        [](void *self) -> void * {
            static_cast<service *>(self)->run();
            return nullptr;
        },
        this);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (made != 0) {
        nc_debug("descriptors are not shared: there is no thread (%s)", std::strerror(made));
        return false;
    }
    pthread_detach(thread);
    return true;
}

// A program may close descriptors that it does not know, and use their numbers again.
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
        request asked;
        sockaddr_un from = {};
        datagram message(&asked, sizeof(asked));
        message.address(&from, sizeof(from));
        const ssize_t got = message.receive(socket_.number(), 0);
        if (got < 0) {
            if (errno != EINTR) {
                const timespec a_while = {0, 1000000};
                nanosleep(&a_while, nullptr);
            }
            continue;
        }
        message.take_files(nullptr, 0);
        if (got == sizeof(asked) && !message.was_cut() && message.is_from_this_user() &&
            socket_is_ours()) {
            reply(asked, &from, message.address_length());
        }
    }
}

// Never waits: who asks has room for one answer.
void service::reply(const request &asked, sockaddr_un *to, socklen_t length) noexcept {
    answer said = {{asked.number[0], asked.number[1]}, verdict::unknown, 0, 0, 0, {}};
    file_descriptor files[most_shared_descriptors];
    int numbers[most_shared_descriptors];
    {
        std::lock_guard<std::mutex> guard(mutex_);
        const auto found = offers_.find(number_of(asked.number));
        if (found != offers_.end()) {
            answer waits;
            datagram message(&waits, sizeof(waits));
            const ssize_t got = message.receive(found->second, MSG_PEEK | MSG_DONTWAIT);
            const size_t count = got < 0 ? 0 : message.take_files(files, most_shared_descriptors);
            const bool whole = got >= 0 && static_cast<size_t>(got) == waits.bytes() &&
                               number_of(waits.number) == number_of(asked.number);
            if (whole && !message.was_cut() && count == waits.count) {
                said = waits;
            } else {
                said.what = verdict::no_descriptors;
            }
        }
    }
    for (size_t i = 0; i < said.count; ++i) {
        numbers[i] = files[i].number();
    }
    datagram message(&said, said.bytes());
    message.put(numbers, said.count);
    message.address(to, length);
    if (!message.send(socket_.number(), MSG_DONTWAIT)) {
        nc_debug("who asked for descriptors gets no answer: %s", std::strerror(errno));
    }
}

// An offer, which ends with this.
struct kept_offer {
    explicit kept_offer(size_t count) noexcept : files(count) {}
    ~kept_offer() {
        if (owner != nullptr && owner == service::known()) {  // not in a child after fork()
            owner->remove(number);                            // before the socket is closed
        }
    }
    kept_offer(const kept_offer &) = delete;
    kept_offer &operator=(const kept_offer &) = delete;

    const waiting_files files;
    offer_number number;
    file_descriptor reader;
    service *owner = nullptr;
};

}  // namespace

ucs_status_t offer_descriptors(const void *about, size_t size, const file_descriptor *files,
                               size_t count, descriptor_ticket *ticket_p,
                               std::shared_ptr<void> *keeper_p) noexcept try {
    if (size > most_shared_bytes || count == 0 || count > most_shared_descriptors) {
        return UCS_ERR_INVALID_PARAM;
    }
    auto made = std::make_shared<kept_offer>(count);
    service *const owner = service::get();
    uint64_t number[2];
    int ends[2];
    if (made->files.status() != UCS_OK) {
        nc_debug("%zu descriptors are not shared: too many would wait", count);
        return made->files.status();
    }
    if (owner == nullptr || getrandom(number, sizeof(number), GRND_NONBLOCK) != sizeof(number) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        nc_debug("%zu descriptors are not shared: there is no socket or thread", count);
        return UCS_ERR_NO_RESOURCE;
    }
    const file_descriptor writer(ends[0]);
    made->reader = file_descriptor(ends[1]);
    made->number = number_of(number);
    answer waits = {{number[0], number[1]},
                    verdict::with_descriptors,
                    static_cast<uint32_t>(count),
                    static_cast<uint32_t>(size),
                    0,
                    {}};
    std::memcpy(waits.about, about, size);
    int numbers[most_shared_descriptors];
    for (size_t i = 0; i < count; ++i) {
        numbers[i] = files[i].number();
    }
    datagram message(&waits, waits.bytes());
    message.put(numbers, count);
    if (!message.send(writer.number(), MSG_DONTWAIT)) {
        nc_debug("%zu descriptors are not shared: %s", count, std::strerror(errno));
        return UCS_ERR_NO_RESOURCE;
    }
    owner->add(made->number, made->reader.number());
    made->owner = owner;
    *ticket_p = {owner->name(), {number[0], number[1]}};
    *keeper_p = std::move(made);
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

ucs_status_t take_descriptors(const descriptor_ticket &from, void *about, size_t size,
                              file_descriptor *files, size_t most, size_t *count_p) noexcept {
    sockaddr_un owner, own = {};
    const socklen_t length = name_of(from.service, &owner);
    own.sun_family = AF_UNIX;  // and no more: the system chooses a name
    const file_descriptor socket = make_socket();
    if (!socket ||
        bind(socket.number(), reinterpret_cast<const sockaddr *>(&own), sizeof(sa_family_t)) != 0) {
        nc_debug("descriptors cannot be taken: no socket (%s)", std::strerror(errno));
        return UCS_ERR_NO_RESOURCE;
    }
    // From now on it takes messages of the owner alone.
    if (connect(socket.number(), reinterpret_cast<const sockaddr *>(&owner), length) != 0) {
        nc_debug(
            "descriptors cannot be taken: their owner has ended, or its network namespace is "
            "not ours (%s)",
            std::strerror(errno));
        return UCS_ERR_NO_ELEM;
    }
    request wanted = {{from.number[0], from.number[1]}};
    answer said;
    datagram question(&wanted, sizeof(wanted)), reply(&said, sizeof(said));
    const auto deadline = wait_clock::now() + longest_wait;
    bool sent;
    do {
        sent = question.send(socket.number(), MSG_DONTWAIT);
    } while (!sent && may_try_again(socket.number(), POLLOUT, deadline));
    if (!sent) {
        nc_debug("descriptors cannot be taken: their owner cannot be asked (%s)",
                 std::strerror(errno));
        return errno == ECONNREFUSED ? UCS_ERR_NO_ELEM : UCS_ERR_TIMED_OUT;
    }
    ssize_t got;
    do {
        got = reply.receive(socket.number(), MSG_DONTWAIT);
    } while (got < 0 && may_try_again(socket.number(), POLLIN, deadline));
    if (got < 0) {
        nc_debug("descriptors cannot be taken: their owner does not answer within a second");
        return UCS_ERR_TIMED_OUT;
    }
    const size_t count = reply.take_files(files, most);
    const bool whole = static_cast<size_t>(got) >= offsetof(answer, about) &&
                       said.size <= most_shared_bytes && static_cast<size_t>(got) == said.bytes();
    ucs_status_t status = UCS_ERR_NO_ELEM;
    if (whole && reply.is_from_this_user() && number_of(said.number) == number_of(from.number)) {
        if (said.what == verdict::no_descriptors || reply.was_cut()) {
            status = UCS_ERR_NO_RESOURCE;
        } else if (said.what == verdict::with_descriptors && said.size == size &&
                   said.count == count && count != 0) {
            status = UCS_OK;
        }
    }
    if (status != UCS_OK) {
        for (size_t i = 0; i < count; ++i) {
            files[i] = file_descriptor();
        }
        return status;
    }
    std::memcpy(about, said.about, size);
    *count_p = count;
    return UCS_OK;
}

bool is_own(const descriptor_ticket &ticket) noexcept {
    service *const one = service::known();
    return one != nullptr && one->name() == ticket.service;
}

}  // namespace cuda_nc
