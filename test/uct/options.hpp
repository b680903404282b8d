// What the matrix was told to do, and how it says that something is wrong.
#pragma once

#include <ucs/type/status.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace matrix {

constexpr int max_ranks = 8;

struct options {
    int ranks = 2;
    int batches = 20;
    int window = 8;
    int each_way = 0;  // 0: as many messages as the window allows, between any two
    size_t least = 1, largest = 3 << 20;  // bytes
    unsigned long long seed = 1;
    bool wakeup = false;
    bool peer_errors = false;
    bool may_fail = false;  // requests, for a fault of the GPU
    std::string kinds = "ghci";
    std::string calls = "t";
    std::string memory = "sim";  // of kind g
    int gpus = 2;
    int kill_batch = -1;
    int leave_batch = -1;
    int lose_batch = -1;
    int close_batch = -1;
    int sleep_batch = -1;
    int seconds = 0;         // 0: so many batches
    int notice_within = 60;  // seconds, of the loss of a peer
    bool hosts = false;
    bool self = false;
    bool plain_sends = false;
    std::string bystander;  // a library with bystander_begin() (test/gpu/accidents)
    std::vector<std::string> odd;
};
inline options chosen;

inline int rank_;

[[noreturn]] inline void fail(const std::string &what) {
    std::printf("seed %llu: rank %d: %s\n", chosen.seed, rank_, what.c_str());
    std::fflush(stdout);
    _exit(1);
}

inline void check(ucs_status_t status, const char *what) {
    if (status != UCS_OK) {
        fail(std::string(what) + ": " + ucs_status_string(status));
    }
}

inline bool set_flag(const std::string &name) {
    static const std::map<std::string, bool options::*> flags = {
        {"--hosts", &options::hosts},
        {"--may-fail", &options::may_fail},
        {"--peer-errors", &options::peer_errors},
        {"--plain-sends", &options::plain_sends},
        {"--self", &options::self},
        {"--wakeup", &options::wakeup},
    };
    auto found = flags.find(name);
    if (found != flags.end()) {
        chosen.*found->second = true;
    }
    return found != flags.end();
}

inline bool set_number(const std::string &name, const char *value) {
    static const std::map<std::string, int options::*> numbers = {
        {"--batches", &options::batches},
        {"--close-batch", &options::close_batch},
        {"--each-way", &options::each_way},
        {"--gpus", &options::gpus},
        {"--kill-batch", &options::kill_batch},
        {"--leave-batch", &options::leave_batch},
        {"--lose-batch", &options::lose_batch},
        {"--notice-within", &options::notice_within},
        {"--ranks", &options::ranks},
        {"--seconds", &options::seconds},
        {"--sleep-batch", &options::sleep_batch},
        {"--window", &options::window},
    };
    auto found = numbers.find(name);
    if (found != numbers.end()) {
        chosen.*found->second = std::atoi(value);
    }
    return found != numbers.end();
}

inline bool set_other(const std::string &name, const char *value) {
    if (name == "--least") {
        chosen.least = std::strtoull(value, nullptr, 10);
    } else if (name == "--largest") {
        chosen.largest = std::strtoull(value, nullptr, 10);
    } else if (name == "--seed") {
        chosen.seed = std::strtoull(value, nullptr, 10);
    } else if (name == "--kinds") {
        chosen.kinds = value;
    } else if (name == "--calls") {
        chosen.calls = value;
    } else if (name == "--memory") {
        chosen.memory = value;
    } else if (name == "--bystander") {
        chosen.bystander = value;
    } else if (name == "--odd") {
        chosen.odd.emplace_back(value);
    } else {
        return false;
    }
    return true;
}

inline void parse(int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (set_flag(name)) {
            continue;
        }
        if (++i == argc) {
            fail("unknown option, or one that lacks its value: " + name);
        }
        if (!set_number(name, argv[i]) && !set_other(name, argv[i])) {
            fail("unknown option " + name);
        }
    }
    if (chosen.ranks < 2 || chosen.ranks > max_ranks) {
        fail("2 to 8 ranks");
    }
    chosen.peer_errors |= chosen.kill_batch >= 0 || chosen.close_batch >= 0;
}

}  // namespace matrix
