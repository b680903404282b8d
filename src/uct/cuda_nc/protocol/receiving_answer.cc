// What a receiver answers to an offer: it pulls the bytes, or lends a pipe or slots.
#include <algorithm>
#include <cstring>
#include <optional>

#include "ucs/base/settings.hpp"
#include "ucs/base/trace.hpp"
#include "uct/cuda_nc/engine/admission.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/pipe/shape.hpp"
#include "uct/cuda_nc/protocol/receiving.hpp"
#include "uct/cuda_nc/engine/traffic.hpp"

namespace cuda_nc::uct {
namespace {

// Where memory is short a long message goes round in less of it, down to this many bytes.
constexpr uint64_t least_ring = 64 << 10;

// Bytes beside those wanted that a pull may read, at most; nothing: it does not pay at all.
//
// A pipe's second kernel and what the two tell each other take as long as 2 MB cross a link. Among
// many messages it is launches that a pull saves, as long as 1.75 MB take: what crosses for nothing
// is others' time, and the reads of long messages keep the link busy the other way too. Measured on
// two H200 (bench/results, messages).
std::optional<uint64_t> most_detour(uint64_t bytes, bool alone) noexcept {
    constexpr uint64_t alone_most = 2 << 20, long_message = 4 << 20, launch_bytes = 7 << 18;
    if (alone) {
        return alone_most;
    }
    if (bytes > long_message) {
        return std::nullopt;
    }
    return std::max(bytes / 8, launch_bytes - std::min(bytes, launch_bytes));
}

}  // namespace

// Each message leaves half of the channels that it finds to those that come before its end. Among
// many it gets so few that about 16 of a megabyte are under way at a time: a launch and the flags
// take longer than the bytes.
unsigned receiving::share_of_channels(uint64_t bytes, unsigned most) const noexcept {
    const unsigned limit = channel_limit(device_), others = channels_promised(device_);
    unsigned least = std::max(1u, std::min(16u, limit / 8));
    if (bytes > (uint64_t{2} << 20)) {
        least *= 2;  // it would be the last to end
    }
    return std::min(most, std::max(limit > others ? (limit - others) / 2 : 0, least));
}

// When a sender has filled the ring it is too late to find that there is no stream.
bool receiving::take_pipe_side() noexcept {
    if (has_stream(device_)) {
        side_ = take_side(device_);
    }
    return side_ != nullptr;
}

// Nor that there is no memory for the tables of a list: they are moved before anything is promised.
bool receiving::moves_tables(const layout *target) noexcept {
    if (target == nullptr || target->view().num_blocks <= 1) {
        return true;
    }
    bool later;
    std::shared_ptr<pipe_stream> stream = take_stream(device_, &later);
    gpu::pipe_work whole;
    whole.length = total_;
    return stream != nullptr && end_->prepare(whole, stream->get(), false) == UCS_OK;
}

void receiving::begin_drive(const gpu::pipe_work &work, uint64_t segment,
                            bool in_memory_order) noexcept {
    by_pipe_ = true;
    promised_ = work.geometry.channels;
    promise_channels(device_, promised_);
    drive_.begin(*side_, *end_, gpu::direction::unpack, work, total_, segment, in_memory_order);
}

bool receiving::goes_by_copy(const gpu::device &gpu, const gpu::pipe_work &pull,
                             const layout &target, const char *base) const noexcept {
    constexpr size_t few = 4;  // many share launches: kernels are as quick for them
    const bool alike = pull.source == nullptr;
    const layout_view &to = alike ? target.in_memory_order().view() : target.view();
    gpu::box rows;
    return config().copy_engines && owner_.num_messages() <= few && gpu.copies_rows() &&
           gpu::find_box(alike ? to : *pull.source, to, total_, &rows) &&
           copy_pays(rows, pull.source_base, base) && take_copy(device_, total_);
}

bool receiving::accept_pull(const wire::early_terms &terms, uint32_t flags) noexcept {
    gpu::device *gpu = gpu::platform::instance().get_device(device_);
    char *base;
    const layout *target = end_->laid_out(&base);
    const unsigned channels = message_channels(device_);
    if (gpu == nullptr || target == nullptr || !owner_.uses_pipes() || channels == 0 ||
        total_ > std::min<uint64_t>(config().pull_max, gpu::max_pipe_length)) {
        return false;
    }
    const bool same_gpu = is_on(gpu, terms.offer);
    const std::optional<uint64_t> most =
        same_gpu ? UINT64_MAX : most_detour(total_, owner_.has_one_message());
    if (!most) {
        return false;
    }
    source_ = reach_source(device_, terms, *target, total_, *most);
    if (!source_ || !take_pipe_side()) {
        source_ = {};
        return false;
    }
    gpu::pipe_work work;
    work.pulls = true;
    work.source = source_.what != nullptr ? &source_.what->view() : nullptr;
    work.source_base = source_.base;
    const bool of_list =
        target->view().num_blocks > 1 || (work.source != nullptr && work.source->num_blocks > 1);
    // On one GPU a kernel is as quick, and longer messages are quicker.
    by_copy_ = work.copies = !same_gpu && goes_by_copy(*gpu, work, *target, base);
    work.geometry = work.copies ? copy_geometry()
                                : choose_pull_geometry(total_, share_of_channels(total_, channels),
                                                       of_list && owner_.has_one_message());
    work.sequence = side_->sequence;

    pulls_ = true;
    begin_drive(work, total_, work.source == nullptr);
    drive_.try_launch();
    owner_.launch_if_alone();  // the sender can wait, and hears of the end after the beginning
    wire::control answer = {};
    answer.kind = wire::control_kind::pull;
    answer.flags = flags;
    answer.to = sender_;
    answer.from = id_;
    owner_.send_control(ep_, answer);
    is_answered_ = true;
    progress();  // says what has happened meanwhile
    trace_mark("answer leaves", sender_);
    return true;
}

bool receiving::accept_pipe(const wire::pipe_offer &offer, uint32_t flags) noexcept {
    sending_process_ = offer.process;
    gpu::device *gpu = gpu::platform::instance().get_device(device_);
    unsigned channels = std::min(offer.channels, message_channels(device_));
    if (gpu == nullptr || !owner_.uses_pipes() || channels == 0 || offer.sequence == 0 ||
        offer.sequence >= last_sequence || offer.sequence % gpu::pipe_sequence_step != 0) {
        return false;
    }
    if (is_on(gpu, offer)) {
        return false;  // one GPU has both kernels: no pair of them need fit on it
    }
    gpu::pipe_work work;
    constexpr size_t alignment = 16;
    credits_ = reach_peer_memory(device_, offer.memory, offer.process, offer.credits,
                                 uint64_t{channels} * gpu::pipe_word_stride, alignment);
    if (!credits_) {
        return false;
    }
    work.credits = credits_.address;
    char *base;
    const layout *target = end_->laid_out(&base);
    if (!moves_tables(target) || !take_pipe_side()) {
        return false;
    }
    uint64_t segment = std::min<uint64_t>(total_, owner_.longest_segment());
    channels = share_of_channels(segment, channels);
    for (uint64_t room = UINT64_MAX; !memory_; room = work.geometry.ring_size() / 2) {
        work.geometry = choose_geometry(segment, channels, room);
        if (work.geometry.channels == 0 || (room != UINT64_MAX && room < least_ring)) {
            release(true);
            return false;
        }
        memory_ = take_region(device_, work.geometry.ring_size());
    }
    work.sequence = std::max(side_->sequence, offer.sequence);
    work.ring = memory_.address;
    work.flags = side_->words;

    const bool alike = target != nullptr && is_alike(offer, *target, total_);
    wire::control answer = {};
    answer.kind = wire::control_kind::pipe;
    answer.flags = flags | (alike ? wire::memory_order : 0);
    answer.to = sender_;
    answer.from = id_;
    answer.offset = memory_.offset;
    answer.process = owner_.process();
    answer.handle = memory_.handle();
    wire::pipe_terms &terms = answer.terms;
    terms.channels = work.geometry.channels;
    terms.chunk_size = work.geometry.chunk_size;
    terms.depth = work.geometry.depth;
    terms.sequence = work.sequence;
    terms.segment = segment;
    terms.flags = side_->words_offset;
    terms.flags_memory = *side_->handle;
    owner_.send_control(ep_, answer);
    trace_mark("answer leaves", sender_);

    begin_drive(work, segment, alike);
    // While there is much room a kernel may wait for its peer on the GPU.
    if (channels_promised(device_) > channel_limit(device_) / 2) {
        drive_.await_call();
    } else {
        drive_.try_launch();
    }
    return true;
}

bool receiving::take_slots(const ring &slots) noexcept {
    if (!slots) {
        return false;
    }
    memory_ = slots.memory;
    slot_size_ = slots.slot_size;
    num_slots_ = slots.num_slots;
    on_host_ = slots.on_host;
    for (unsigned i = 0; i < num_slots_; ++i) {
        slots_[i].done = owner_.take_event(device_);
        if (slots_[i].done == nullptr) {
            release(true);
            return false;
        }
    }
    return true;
}

bool receiving::accept_slots(const wire::pipe_offer &offer, uint32_t flags) noexcept {
    const bool same_gpu = is_on(gpu::platform::instance().get_device(device_), offer);
    // Launches reach no other GPU's memory of their own process.
    const bool on_host =
        (offer.flags & wire::host_slots) != 0 || (!same_gpu && is_own(offer.process));
    if (!take_slots(take_ring(device_, rest(), same_gpu, on_host))) {
        return false;
    }
    wire::control answer = {};
    answer.kind = wire::control_kind::accept;
    answer.slot = static_cast<uint16_t>(num_slots_);
    answer.flags = flags | (on_host_ ? wire::host_slots : 0);
    answer.to = sender_;
    answer.from = id_;
    answer.offset = memory_.offset;
    answer.length = slot_size_;
    answer.process = owner_.process();
    answer.handle = memory_.handle();
    owner_.send_control(ep_, answer);
    trace_mark(on_host_ ? "host slots lent" : "slots lent", sender_);
    trace_mark("answer leaves", sender_);
    return true;
}

bool receiving::accept_puts(uint32_t flags) noexcept {
    carrier_memory &network = *owner_.iface().gpu_memory;
    if (network.refuses() || !take_slots(take_gpu_ring(device_, rest()))) {
        return false;
    }
    const carrier_memory::registration *known = network.find(memory_);
    if (known == nullptr) {
        release(true);
        return false;
    }
    by_carrier_ = true;
    wire::control answer = {};
    answer.kind = wire::control_kind::lend;
    answer.slot = static_cast<uint16_t>(num_slots_);
    answer.flags = flags;
    answer.to = sender_;
    answer.from = id_;
    answer.length = slot_size_;
    answer.put.address = reinterpret_cast<uintptr_t>(memory_.address);
    answer.put.key_length = static_cast<uint32_t>(network.key_bytes());
    static_assert(sizeof(answer.put.key) == sizeof(known->key));
    std::memcpy(answer.put.key, known->key, sizeof(known->key));
    owner_.send_control(ep_, answer);
    trace_mark("slots lent to the network", sender_);
    trace_mark("answer leaves", sender_);
    return true;
}

}  // namespace cuda_nc::uct
