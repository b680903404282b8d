#include "tools/perftest/message/rank_buffers.hpp"

#include <cstring>
#include <vector>

#include <fmt/core.h>

#include "tools/perftest/support/timed_transfer.hpp"
#include "tools/perftest/support/oracle.hpp"
#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {
namespace {

constexpr size_t alignment = 256;

uint64_t source_seed(int rank, unsigned index) {
    return (static_cast<uint64_t>(rank) + 1) * 1000003 + index;
}

uint64_t target_seed(int rank, unsigned index) {
    return ~source_seed(rank, index);
}

// A byte that no block covers, or the span's size where there is none.
size_t first_gap(const layout &what, size_t span) {
    std::vector<bool> covered(span);
    layout_cursor blocks(what, 0);
    for (block one = blocks.next(UINT64_MAX); one.length != 0; one = blocks.next(UINT64_MAX)) {
        for (uint64_t i = 0; i < one.length; ++i) {
            covered[static_cast<size_t>(one.displacement - what.lower_bound()) + i] = true;
        }
    }
    size_t at = 0;
    while (at < span && covered[at]) {
        ++at;
    }
    return at;
}

void spoil(const std::string &inject, const layout &what, std::vector<char> *found_p) {
    size_t at = found_p->size();
    if (inject == "byte") {
        layout_cursor blocks(what, 0);
        at = static_cast<size_t>(blocks.next(1).displacement - what.lower_bound());
    } else if (inject == "gap") {
        at = first_gap(what, found_p->size());
    }
    if (at < found_p->size()) {
        (*found_p)[at] = static_cast<char>((*found_p)[at] ^ 1);
    }
}

}  // namespace

rank_buffers::rank_buffers(const buffers_request &request)
    : request_(request),
      span_(laid_out_size(*request.what)),
      stride_(stride_of(*request.what, request.misalign)),
      send_(allocate_memory(request.memory, request.gpu, stride_ * request.window)),
      receive_(allocate_memory(request.memory, request.gpu, stride_ * request.window)) {}

size_t rank_buffers::stride_of(const layout &what, size_t misalign) noexcept {
    return (laid_out_size(what) + misalign + alignment) / alignment * alignment;
}

char *rank_buffers::at(const message_memory &memory, unsigned index) const noexcept {
    return memory.address() + index * stride_ + request_.misalign - request_.what->lower_bound();
}

void rank_buffers::fill_source() {
    for (unsigned i = 0; i < request_.window; ++i) {
        const std::vector<char> bytes = noise(span_, source_seed(request_.rank, i));
        send_->write(i * stride_ + request_.misalign, bytes.data(), bytes.size());
    }
}

void rank_buffers::fill_target() {
    for (unsigned i = 0; i < request_.window; ++i) {
        const std::vector<char> bytes = noise(span_, target_seed(request_.rank, i));
        receive_->write(i * stride_ + request_.misalign, bytes.data(), bytes.size());
    }
}

std::string rank_buffers::verify(unsigned messages, const std::string &inject) {
    std::vector<char> found(span_);
    for (unsigned i = 0; i < request_.window; ++i) {
        const std::vector<char> before = noise(span_, target_seed(request_.rank, i));
        const std::vector<char> sent = noise(span_, source_seed(request_.peer, i));
        receive_->read(i * stride_ + request_.misalign, found.data(), found.size());
        if (i == 0) {
            spoil(inject, *request_.what, &found);
        }
        const std::string fault = compare(
            i < messages ? expected_target(*request_.what, gpu::direction::copy, sent, before)
                         : before,
            found);
        if (!fault.empty()) {
            return fmt::format("WRONG in message {}: {}", i, fault);
        }
    }
    return "";
}

}  // namespace cuda_nc::tools
