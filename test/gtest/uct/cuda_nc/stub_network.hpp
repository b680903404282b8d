// A carrier between hosts whose network reads and writes GPU memory, within this process. It is as
// slow, as full and as faulty as a test wants, and no better than UCX says that carriers are: a put
// that has ended may be written later, and only a fence orders it before what follows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/protocol/direct_messages.hpp"
#include "uct/cuda_nc/protocol/put_slots.hpp"

namespace cuda_nc::uct::stub {

using namespace abi;

struct registered {
    char *address;
    size_t length;
};

struct iface {
    uct_base_iface base;  // first: UCX's functions write handlers there
    bool closed = false;
};

struct put {
    const char *source;
    std::vector<char> bytes;  // once they are read
    size_t length;
    char *destination;
    uct_completion *completion;
    ucs_status_t result;
    bool ended = false, written = false;
};

struct message {
    uint8_t id;
    std::vector<char> bytes;
    size_t puts_before;  // so many puts of the endpoint must have been written
};

struct recorded {
    uint8_t id;
    std::vector<char> bytes;
};

struct endpoint {
    uct_ep super;
    iface *target;
    std::list<put> puts;
    std::deque<message> messages;
    std::deque<void *> pending;
    size_t fenced = 0;   // puts
    size_t written = 0;  // puts in all, and forgotten
};

// One at a time.
struct network {
    const unsigned seed = std::random_device()();
    std::mt19937_64 random{seed};
    unsigned full = 0;            // of 100 operations
    unsigned slow = 30;           // of 100 steps nothing happens, for each operation
    int puts_until_error = -1;    // a put that ends with an error, and is written much later
    int puts_until_refusal = -1;  // a put that is refused with an error
    bool stuck = false;           // puts do not end
    bool takes_gpu_memory = true;
    size_t key_bytes = 8;
    uint64_t connects = cap_flag::connect_to_ep, reaches = cap_flag::inter_node;

    std::set<registered *> registrations;
    unsigned registered_ever = 0;
    std::set<const void *> keys;                 // unpacked
    std::vector<std::unique_ptr<iface>> ifaces;  // endpoints may lead to closed ones
    std::set<endpoint *> endpoints;
    struct progress_call {
        unsigned (*function)(void *);
        void *arg;
    };
    std::map<int, progress_call> callbacks;
    int next_callback = 0;
    std::vector<wire::control> controls;  // all that were delivered
    std::vector<recorded> messages;       // the same of every kind, where it `records`
    bool records = false;
    unsigned puts = 0, flushes = 0;
    std::unique_ptr<gpu::stream> stream;
    std::unique_ptr<gpu::event> event;
    ucx_api api = {};

    network();
    bool chance(unsigned percent) { return random() % 100 < percent; }
    // Between memory of any kinds, at once.
    void copy(void *to, const void *from, size_t length);
    // What UCX does in one call of progress.
    void step();
    // What a carrier does in one of its own. Returns how many messages have come.
    unsigned receive(iface *own);

    void set_ops(uct_iface_ops &ops);
    void set_api();
    void end(put &one);
    void write(endpoint &from, put &one);
    void progress_puts(endpoint &ep);
    bool writes_before(endpoint &ep, const message &next);
    void deliver(endpoint &ep);
    void dispatch(endpoint &ep);
};

extern network *now;

}  // namespace cuda_nc::uct::stub
