// How the stub's network goes on.
#include "uct/cuda_nc/stub_network.hpp"

namespace cuda_nc::uct::stub {

network *now;

void network::copy(void *to, const void *from, size_t length) {
    ASSERT_EQ(stream->copy(to, from, length), UCS_OK);
    ASSERT_EQ(stream->record(*event), UCS_OK);
    ASSERT_EQ(event->synchronize(), UCS_OK);
}

void network::end(put &one) {
    one.bytes.resize(one.length);
    copy(one.bytes.data(), one.source, one.length);
    one.ended = true;
    one.completion->status = one.result;
    if (--one.completion->count == 0) {
        one.completion->func(one.completion);
    }
}

void network::write(endpoint &from, put &one) {
    if (!one.written && !from.target->closed) {
        copy(one.destination, one.bytes.data(), one.length);
    }
    one.written = true;
}

void network::progress_puts(endpoint &ep) {
    for (put &one : ep.puts) {
        if (stuck || chance(slow)) {
            continue;
        }
        if (!one.ended) {
            end(one);
        } else if (chance(one.result == UCS_OK ? 10 : 1)) {  // what follows is usually earlier
            write(ep, one);
        }
    }
    while (!ep.puts.empty() && ep.puts.front().written && ep.puts.front().ended) {
        ep.puts.pop_front();
        ++ep.written;
    }
}

// Whether it may be delivered now: what a fence says goes before.
bool network::writes_before(endpoint &ep, const message &next) {
    size_t number = ep.written;
    for (put &one : ep.puts) {
        if (number++ >= next.puts_before) {
            break;
        }
        if (stuck) {
            return false;
        }
        if (!one.ended) {
            end(one);
        }
        if (one.result == UCS_OK) {
            write(ep, one);
        }
    }
    return true;
}

void network::deliver(endpoint &ep) {
    if (ep.messages.empty() || chance(slow) || !writes_before(ep, ep.messages.front())) {
        return;
    }
    message next = std::move(ep.messages.front());
    ep.messages.pop_front();
    if (ep.target == nullptr || ep.target->closed) {
        return;
    }
    if (next.id == wire::control_id) {
        wire::control seen = {};  // the beginning of an announcement
        std::memcpy(&seen, next.bytes.data(), std::min(sizeof(seen), next.bytes.size()));
        controls.push_back(seen);
    }
    if (records) {
        messages.push_back({next.id, next.bytes});
    }
    const uct_am_handler &handler = ep.target->base.am[next.id];
    handler.cb(handler.arg, next.bytes.data(), next.bytes.size(), 0);
}

unsigned network::receive(iface *own) {
    unsigned came = 0;
    for (endpoint *ep : std::vector<endpoint *>(endpoints.begin(), endpoints.end())) {
        if (endpoints.count(ep) != 0 && ep->target == own) {
            const size_t before = ep->messages.size();
            deliver(*ep);
            came += endpoints.count(ep) != 0 && ep->messages.size() < before ? 1 : 0;
        }
    }
    return came;
}

void network::dispatch(endpoint &ep) {
    if (ep.pending.empty() || chance(full)) {
        return;
    }
    void *request = ep.pending.front();
    ep.pending.pop_front();
    ucs_status_t status = (*static_cast<ucs_status_t (**)(void *)>(request))(request);
    if (status == UCS_ERR_NO_RESOURCE || status == UCS_INPROGRESS) {
        ep.pending.push_front(request);
    }
}

void network::step() {
    auto alive = [this](endpoint *ep) { return endpoints.count(ep) != 0; };
    for (endpoint *ep : std::vector<endpoint *>(endpoints.begin(), endpoints.end())) {
        if (alive(ep)) {
            progress_puts(*ep);
        }
        if (alive(ep)) {
            deliver(*ep);
        }
        if (alive(ep)) {
            dispatch(*ep);
        }
    }
    for (const auto &[id, one] : std::map<int, progress_call>(callbacks)) {
        if (callbacks.count(id) != 0) {
            one.function(one.arg);
        }
    }
}

}  // namespace cuda_nc::uct::stub
