#include "uct/cuda_nc/protocol/route_pipe.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "ucs/base/log.hpp"
#include "ucs/base/trace.hpp"
#include "ucs/layout/layout.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/engine/stream_pool.hpp"
#include "uct/cuda_nc/pipe/shape.hpp"
#include "uct/cuda_nc/protocol/source.hpp"

namespace cuda_nc::uct {
namespace {

constexpr size_t words_alignment = 16;

// Where memory is short a long message goes round in a shorter ring, of at least so many bytes.
constexpr uint64_t least_ring = 64 << 10;

bool is_sequence(uint64_t sequence) noexcept {
    return sequence < last_sequence && sequence % gpu::pipe_sequence_step == 0;
}

void wake_peer(message_services &services, endpoint *ep, uint64_t to, uint64_t from,
               uint64_t segment) noexcept {
    wire::control message = {};
    message.kind = wire::control_kind::wake;
    message.to = to;
    message.from = from;
    message.offset = segment;
    services.control.send(ep, message);
}

}  // namespace

// ---- sender

std::unique_ptr<send_route> pipe_sender::open(const send_context &context,
                                              const wire::control &answer, pipe_port *port,
                                              uint32_t channels, bool *unreachable_p) noexcept {
    const wire::pipe_answer &pipe = answer.pipe;
    gpu::pipe_work work;
    work.geometry = {pipe.channels, pipe.chunk_size, pipe.depth};
    work.sequence = pipe.sequence;
    *unreachable_p = false;
    if (port == nullptr || !work.geometry.valid() || pipe.channels > channels ||
        pipe.sequence < port->sequence || !is_sequence(pipe.sequence) ||
        pipe.segment < std::min(context.total, least_segment) ||
        pipe.segment > gpu::max_pipe_length) {
        nc_debug("the receiver answers with a pipe that cannot be");
        return nullptr;
    }
    peer_memory ring = reach_peer_memory(context.device, answer.handle, answer.process,
                                         answer.offset, work.geometry.ring_size(), words_alignment);
    peer_memory flags = reach_peer_memory(context.device, pipe.flags_memory, answer.process,
                                          pipe.flags, work.geometry.words_size(), words_alignment);
    if (!ring || !flags) {
        nc_debug("the memory of the receiver's pipe cannot be reached");
        *unreachable_p = true;
        return nullptr;
    }
    std::unique_ptr<pipe_sender> made(new (std::nothrow)
                                          pipe_sender(context, port, answer.process));
    if (made == nullptr) {
        return nullptr;
    }
    work.ring = ring.address;
    work.flags = flags.address;
    work.credits = port->words;
    made->ring_ = std::move(ring);
    made->flags_ = std::move(flags);
    made->drive_.begin(*port, context.buffer, gpu::direction::pack, work, context.total,
                       pipe.segment, (answer.flags & wire::memory_order) != 0);
    return made;
}

pipe_sender::~pipe_sender() {
    pipe_sender::stop();
    return_port();
}

// Until the receiver has said that its kernel returns no more credit the port is not lent again.
void pipe_sender::return_port() noexcept {
    pipe_port *port = std::exchange(port_, nullptr);
    if (port == nullptr) {
        return;
    }
    if (drive_.is_broken()) {
        retire_port(port);
    } else if (drive_.now() == pipe_drive::state::complete) {
        release_port(port);
    } else {
        message_.services.ports.add(port, {message_.id, message_.peer}, &message_.ep,
                                    receiving_process_);
    }
}

void pipe_sender::stop() noexcept {
    drive_.stop();
}

send_route::state pipe_sender::progress(unsigned *happened_p) noexcept {
    *happened_p += drive_.progress();
    if (drive_.consume_launch_notice()) {
        wake_peer(message_.services, &message_.ep, message_.receiver, message_.id,
                  drive_.segment());
    }
    if (drive_.now() == pipe_drive::state::failed) {
        return state::failed;
    }
    // The receiver must hear of everything before it hears of the FIN.
    const bool complete = drive_.now() == pipe_drive::state::complete &&
                          !message_.services.control.has_unsent_of(message_.id);
    return complete ? state::complete : state::moving;
}

bool pipe_sender::handle(const wire::control &message) noexcept {
    if (message.kind != wire::control_kind::wake) {
        return false;
    }
    drive_.peer_launched(message.offset);
    return true;
}

std::atomic<uint64_t> &pipe_sender::counter() const noexcept {
    return counters::all().sent_by_pipe;
}

// ---- receiver

bool pipe_receiver::moves_tables(const layout *target) noexcept {
    if (target == nullptr || target->view().num_blocks <= 1) {
        return true;
    }
    gpu::pipe_work whole;
    whole.length = message_.total;
    if (message_.buffer->describe(whole, false) == UCS_OK) {
        return true;  // they are there
    }
    bool later;
    std::shared_ptr<pooled_stream> stream = acquire_stream(message_.device, &later);
    return stream != nullptr && message_.buffer->prepare(whole, stream->get(), false) == UCS_OK;
}

bool pipe_receiver::acquire_ring(uint64_t segment, unsigned channels) noexcept {
    for (uint64_t room = UINT64_MAX; !ring_; room = work_.geometry.ring_size() / 2) {
        work_.geometry = choose_geometry(segment, channels, room);
        if (work_.geometry.channels == 0 || (room != UINT64_MAX && room < least_ring)) {
            return false;
        }
        ring_ = acquire_region(message_.device, work_.geometry.ring_size());
    }
    return true;
}

std::unique_ptr<receive_route> pipe_receiver::prepare(receive_context &context,
                                                      const wire::sender_offer &offer) noexcept {
    const int device = context.device;
    gpu::device *gpu = gpu::platform::instance().get_device(device);
    const unsigned channels = std::min(offer.channels, message_channels(device));
    if (gpu == nullptr || !uses_pipes() || channels == 0 || offer.sequence == 0 ||
        !is_sequence(offer.sequence)) {
        return nullptr;
    }
    if (is_on(gpu, offer)) {
        return nullptr;  // one GPU has both kernels: it may have no room for a pair of them
    }
    peer_memory credits =
        reach_peer_memory(device, offer.memory, offer.process, offer.credits,
                          uint64_t{channels} * gpu::pipe_word_stride, words_alignment);
    std::unique_ptr<pipe_receiver> made(credits ? new (std::nothrow) pipe_receiver(context)
                                                : nullptr);
    char *base;
    const layout *target = context.buffer->laid_out(&base);
    if (made == nullptr || !made->moves_tables(target) || !made->acquire_port()) {
        return nullptr;
    }
    made->segment_ = std::min<uint64_t>(context.total, context.services.longest_segment);
    if (!made->acquire_ring(made->segment_, share_of_channels(device, made->segment_, channels))) {
        made->release(true);
        return nullptr;
    }
    gpu::pipe_work &work = made->work_;
    work.sequence = std::max(made->port_->sequence, offer.sequence);
    work.credits = credits.address;
    work.ring = made->ring_.address;
    work.flags = made->port_->words;
    made->credits_ = std::move(credits);
    made->alike_ = target != nullptr && is_alike(offer, *target, context.total);
    return made;
}

pipe_receiver::~pipe_receiver() {
    pipe_receiver::stop();
    pipe_receiver::release(false);
}

void pipe_receiver::answer(uint32_t flags) noexcept {
    wire::control said = {};
    said.kind = wire::control_kind::accept_pipe;
    said.flags = flags | (alike_ ? wire::memory_order : 0);
    said.offset = ring_.offset;
    said.process = message_.services.process;
    said.handle = ring_.handle();
    wire::pipe_answer &pipe = said.pipe;
    pipe.channels = work_.geometry.channels;
    pipe.chunk_size = work_.geometry.chunk_size;
    pipe.depth = work_.geometry.depth;
    pipe.sequence = work_.sequence;
    pipe.segment = segment_;
    pipe.flags = port_->words_offset;
    pipe.flags_memory = *port_->handle;
    message_.send(said);
    trace_mark("answer leaves", message_.sender);

    begin_drive(work_, segment_, alike_);
    // While there is much room a kernel may wait for its peer on the GPU.
    if (channels_promised(message_.device) > channel_limit(message_.device) / 2) {
        drive_.await_peer();
    } else {
        drive_.try_launch();
    }
}

unsigned pipe_receiver::progress() noexcept {
    const unsigned happened = drive_.progress();
    if (drive_.consume_launch_notice()) {
        wake_peer(message_.services, message_.ep, message_.sender, message_.id, drive_.segment());
    }
    if (has_fin_ && has_failed() && drive_.empty_ring() == UCS_OK) {
        is_copied_ = true;
    }
    return happened;
}

bool pipe_receiver::handle(const wire::control &message) noexcept {
    if (message.kind != wire::control_kind::wake) {
        return false;
    }
    drive_.peer_launched(message.offset);
    return true;
}

void pipe_receiver::handle_fin() noexcept {
    has_fin_ = true;
    drive_.peer_launched(drive_.segment());  // all bytes are in the ring
}

bool pipe_receiver::is_through() const noexcept {
    return drive_.now() == pipe_drive::state::complete || is_copied_ || has_failed();
}

ucs_status_t pipe_receiver::status() const noexcept {
    return has_failed() ? UCS_ERR_IO_ERROR : UCS_OK;
}

bool pipe_receiver::has_failed() const noexcept {
    return drive_.now() == pipe_drive::state::failed && !is_copied_;
}

// What its kernel wrote is in the ring. Of two kernels of ours that leave in vain the second has
// begun since, and has found all that there is.
receive_route::rest_of pipe_receiver::without_sender() noexcept {
    if (is_through()) {
        return has_failed() ? rest_of::lost : rest_of::complete;
    }
    if (!in_vain_before_) {
        in_vain_before_ = drive_.left_in_vain();
        drive_.peer_launched(drive_.segment());  // no wake comes any more
    }
    return drive_.now() == pipe_drive::state::waiting &&
                   drive_.left_in_vain() >= *in_vain_before_ + 2
               ? rest_of::lost
               : rest_of::moving;
}

void pipe_receiver::release(bool sender_is_through) noexcept {
    release_port(!sender_is_through);
    if (ring_ && sender_is_through) {
        release_region(ring_);
    } else if (ring_) {
        quarantine(ring_, message_.sending_process, {message_.id, message_.peer});
    }
    ring_ = {};
}

void pipe_receiver::count_received() const noexcept {
    count(counters::all().received_by_pipe);
}

}  // namespace cuda_nc::uct
