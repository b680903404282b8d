#include "tools/perftest/message/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {
namespace {

constexpr uint64_t longest_text = uint64_t(1) << 30;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

[[noreturn]] void fail(const char *what) {
    throw run_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

using address_list = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

address_list look_up(const std::string &host, int port, bool to_listen) {
    addrinfo hints = {}, *found = nullptr;
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = to_listen ? AI_PASSIVE : 0;
    const int status = getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                   std::to_string(port).c_str(), &hints, &found);
    if (status != 0) {
        throw run_error(fmt::format("{}: {}", host, gai_strerror(status)));
    }
    return {found, freeaddrinfo};
}

// A connection to one address, or -1.
int try_connect(const addrinfo &to, double until) {
    const int descriptor =
        socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, to.ai_protocol);
    if (descriptor < 0) {
        return -1;
    }
    int status = connect(descriptor, to.ai_addr, to.ai_addrlen) == 0 ? 0 : errno;
    if (status == EINPROGRESS) {
        pollfd wanted = {descriptor, POLLOUT, 0};
        const double left = until - now();
        socklen_t size = sizeof(status);
        status = ETIMEDOUT;
        if (left > 0 && poll(&wanted, 1, static_cast<int>(left * 1000) + 1) > 0) {
            getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &status, &size);
        }
    }
    if (status != 0) {
        close(descriptor);
        errno = status;
        return -1;
    }
    const int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return descriptor;
}

}  // namespace

connection::~connection() {
    if (descriptor_ >= 0) {
        close(descriptor_);
    }
}

connection::connection(connection &&other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

connection &connection::operator=(connection &&other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
}

void connection::wait_for(short event, double until, double limit_s) const {
    for (;;) {
        const double left = until - now();
        pollfd wanted = {descriptor_, event, 0};
        const int status = left > 0 ? poll(&wanted, 1, static_cast<int>(left * 1000) + 1) : 0;
        if (status > 0) {
            return;
        }
        if (status == 0) {
            throw run_error(fmt::format("the other process says nothing for {:g} s", limit_s));
        }
        if (errno != EINTR) {
            fail("waiting for the other process");
        }
    }
}

void connection::send_bytes(const char *bytes, size_t size, double limit_s) {
    const double until = now() + limit_s;
    while (size > 0) {
        const ssize_t sent = ::send(descriptor_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            bytes += sent;
            size -= static_cast<size_t>(sent);
        } else if (errno == EAGAIN || errno == EINTR) {
            wait_for(POLLOUT, until, limit_s);
        } else {
            throw peer_gone();
        }
    }
}

void connection::receive_bytes(char *bytes, size_t size, double limit_s) {
    const double until = now() + limit_s;
    while (size > 0) {
        const ssize_t got = ::recv(descriptor_, bytes, size, MSG_DONTWAIT);
        if (got > 0) {
            bytes += got;
            size -= static_cast<size_t>(got);
        } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            wait_for(POLLIN, until, limit_s);
        } else {
            throw peer_gone();
        }
    }
}

void connection::send(const std::string &text, double limit_s) {
    const uint64_t size = text.size();
    send_bytes(reinterpret_cast<const char *>(&size), sizeof(size), limit_s);
    send_bytes(text.data(), text.size(), limit_s);
}

std::string connection::receive(double limit_s) {
    uint64_t size = 0;
    receive_bytes(reinterpret_cast<char *>(&size), sizeof(size), limit_s);
    if (size > longest_text) {
        throw run_error("the other process is not nc_perftest of this release");
    }
    std::string text(size, '\0');
    receive_bytes(text.data(), text.size(), limit_s);
    return text;
}

bool connection::has_input() const noexcept {
    pollfd wanted = {descriptor_, POLLIN, 0};
    return poll(&wanted, 1, 0) > 0;
}

bool connection::is_peer_gone() const noexcept {
    char one;
    const ssize_t got = ::recv(descriptor_, &one, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

listener::listener(const std::string &address, int port) {
    const address_list found = look_up(address, port, true);
    for (const addrinfo *one = found.get(); one != nullptr && descriptor_ < 0; one = one->ai_next) {
        descriptor_ = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, one->ai_protocol);
        const int on = 1;
        if (descriptor_ >= 0) {
            setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
            if (bind(descriptor_, one->ai_addr, one->ai_addrlen) != 0 ||
                listen(descriptor_, 8) != 0) {
                const int why = errno;
                close(descriptor_);
                descriptor_ = -1;
                errno = why;
            }
        }
    }
    if (descriptor_ < 0) {
        throw run_error(fmt::format("port {} cannot be used: {}", port, std::strerror(errno)));
    }
    sockaddr_storage bound = {};
    socklen_t size = sizeof(bound);
    if (getsockname(descriptor_, reinterpret_cast<sockaddr *>(&bound), &size) != 0) {
        fail("a port");
    }
    uint16_t number;  // at the same place for both families
    std::memcpy(&number, reinterpret_cast<const char *>(&bound) + sizeof(sa_family_t),
                sizeof(number));
    port_ = ntohs(number);
}

listener::~listener() {
    close(descriptor_);
}

connection listener::accept(double limit_s) const {
    pollfd wanted = {descriptor_, POLLIN, 0};
    const double until = now() + limit_s;
    for (;;) {
        const double left = until - now();
        const int status = left > 0 ? poll(&wanted, 1, static_cast<int>(left * 1000) + 1) : 0;
        if (status == 0) {
            throw run_error(fmt::format("no client has come within {:g} s", limit_s));
        }
        const int descriptor =
            status > 0 ? accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC) : -1;
        if (descriptor >= 0) {
            const int on = 1;
            setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            return connection(descriptor);
        }
        if (errno != EINTR && errno != ECONNABORTED) {
            fail("waiting for a client");
        }
    }
}

connection connect_to(const std::string &host, int port, double limit_s) {
    const double until = now() + limit_s;
    const address_list found = look_up(host, port, false);
    do {
        for (const addrinfo *one = found.get(); one != nullptr; one = one->ai_next) {
            const int descriptor = try_connect(*one, until);
            if (descriptor >= 0) {
                return connection(descriptor);
            }
        }
        const int why = errno;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        errno = why;
    } while (now() < until);
    throw run_error(fmt::format("no server at {} port {}: {} (for {:g} s)", host, port,
                                std::strerror(errno), limit_s));
}

}  // namespace cuda_nc::tools
