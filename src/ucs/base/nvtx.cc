#include "ucs/base/nvtx.hpp"

#include <nvtx3/nvToolsExt.h>

#include <map>
#include <mutex>
#include <string_view>
#include <utility>

namespace cuda_nc {
namespace {

constexpr size_t most_open = 65536;  // some 6 MB

// Ranges that have begun, by message and name. Two messages of one process may share both (a
// message to itself), so that it is a multimap.
struct open_ranges {
    std::mutex mutex;
    std::multimap<std::pair<uint64_t, std::string_view>, nvtxRangeId_t> ranges;
};

open_ranges &get_open_ranges() {
    static auto *only = new open_ranges;  // messages end during exit, too
    return *only;
}

// Null where no tool listens.
nvtxDomainHandle_t get_domain() noexcept {
    static const nvtxDomainHandle_t only = nvtxDomainCreateA("ucx-cuda-nc");
    return only;
}

nvtxEventAttributes_t describe(const char *name, uint64_t bytes) noexcept {
    nvtxEventAttributes_t event = {};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = name;
    if (bytes != 0) {
        event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
        event.payload.ullValue = bytes;
    }
    return event;
}

}  // namespace

bool nvtx_attached() noexcept {
    return get_domain() != nullptr;
}

void nvtx_begin(const char *name, uint64_t id, uint64_t bytes) noexcept try {
    const nvtxEventAttributes_t event = describe(name, bytes);
    open_ranges &open = get_open_ranges();
    std::lock_guard<std::mutex> guard(open.mutex);
    if (open.ranges.size() < most_open) {
        const auto added = open.ranges.emplace(std::make_pair(id, name), nvtxRangeId_t{});
        added->second = nvtxDomainRangeStartEx(get_domain(), &event);
    }
} catch (...) {
    // a range that is not shown harms nobody
}

void nvtx_end(const char *name, uint64_t id) noexcept {
    open_ranges &open = get_open_ranges();
    std::lock_guard<std::mutex> guard(open.mutex);
    const auto found = open.ranges.find({id, name});
    if (found != open.ranges.end()) {
        nvtxDomainRangeEnd(get_domain(), found->second);
        open.ranges.erase(found);
    }
}

void nvtx_mark(const char *name, uint64_t bytes) noexcept {
    const nvtxEventAttributes_t event = describe(name, bytes);
    nvtxDomainMarkEx(get_domain(), &event);
}

}  // namespace cuda_nc
