// Processes as if on hosts of their own: each in a network namespace and under a host name of its
// own, linked by virtual Ethernet. Needs root and the program ip; all of it ends with the
// processes.
#pragma once

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace hosts {

constexpr int most = 8;

// In memory that all the processes share, zero at first.
struct state {
    std::atomic<int> left[most];  // a process is in its own namespace
    std::atomic<int> linked[most];
};

inline bool run(const std::string &command) {
    return std::system(command.c_str()) == 0;
}

template <typename condition>
bool wait_until(condition holds) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!holds()) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        std::this_thread::yield();
    }
    return true;
}

inline bool wait_for(const std::atomic<int> &flag) {
    return wait_until([&] { return flag != 0; });
}

// An interface that was set up carries traffic a moment later; UCX passes over one that does not.
inline bool wait_until_running(const char *interface) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    ifreq query{};
    std::strncpy(query.ifr_name, interface, sizeof(query.ifr_name) - 1);
    bool running =
        fd >= 0 && wait_until([&] {
            return ioctl(fd, SIOCGIFFLAGS, &query) == 0 && (query.ifr_flags & IFF_RUNNING) != 0;
        });
    if (fd >= 0) {
        close(fd);
    }
    return running;
}

// UCX finds interfaces in /sys, which shows those of the namespace that mounted it. Where a mount
// is refused, the machine's own may still have one of the same name.
inline void show_own_interfaces() {
    if (unshare(CLONE_NEWNS) == 0 &&
        mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0) {
        mount("sysfs", "/sys", "sysfs", MS_RDONLY, nullptr);
    }
}

// The parent, before there are children. False: not allowed here.
inline bool prepare() {
    return unshare(CLONE_NEWNET) == 0 &&
           run("ip link add bridge0 type bridge && ip link set bridge0 up");
}

// A child, before it uses the network.
inline bool enter(state &common, int rank) {
    std::string name = "host" + std::to_string(rank);
    if (unshare(CLONE_NEWNET | CLONE_NEWUTS) != 0 || sethostname(name.data(), name.size()) != 0) {
        return false;
    }
    common.left[rank] = 1;
    show_own_interfaces();
    return wait_for(common.linked[rank]) &&
           run("ip link set lo up && ip address add 10.77.0." + std::to_string(rank + 1) +
               "/24 dev eth0 && ip link set eth0 up") &&
           wait_until_running("eth0");
}

// The parent, after the fork.
inline bool link(state &common, int rank, pid_t child) {
    std::string port = "port" + std::to_string(rank);
    bool made =
        wait_for(common.left[rank]) &&
        run("ip link add " + port + " type veth peer name eth0 netns " + std::to_string(child) +
            " && ip link set " + port + " master bridge0 && ip link set " + port + " up");
    common.linked[rank] = made ? 1 : 0;
    return made;
}

}  // namespace hosts
