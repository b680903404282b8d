// Messages that a receiver's GPU takes from the sender's memory itself.
#include <algorithm>

#include "ucs/base/settings.hpp"
#include "ucs/base/trace.hpp"
#include "uct/cuda_nc/admission.hpp"
#include "uct/cuda_nc/pipe_shape.hpp"
#include "uct/cuda_nc/receiving.hpp"
#include "uct/cuda_nc/traffic.hpp"

namespace cuda_nc::uct {
namespace {

// A pipe's second kernel and what the two tell each other take as long as 2 MB cross a link. Among
// many messages it is launches that a pull saves, as long as 1.75 MB take: what crosses for nothing
// is others' time, and the reads of long messages keep the link busy the other way too. Those of a
// list of blocks wait for its tables. Measured on two H200 (bench/results, messages).
bool pays(const source &from, const layout &target, uint64_t bytes, bool alone) noexcept {
    constexpr uint64_t most_detour = 2 << 20, long_message = 4 << 20, launch_bytes = 7 << 18;
    if (bytes > long_message && (!alone || target.view().num_blocks != 1)) {
        return false;
    }
    return alone ? from.detour <= most_detour
                 : from.detour <= std::max(bytes / 8, launch_bytes - std::min(bytes, launch_bytes));
}

}  // namespace

bool receiving::accept_pull(const wire::early_terms &terms, uint32_t flags) noexcept {
    gpu::device *gpu = gpu::platform::instance().get_device(device_);
    char *base;
    const layout *target = end_->laid_out(&base);
    const unsigned lanes = message_lanes(device_);
    if (gpu == nullptr || target == nullptr || !owner_.uses_pipes() || lanes == 0 ||
        total_ > std::min<uint64_t>(config().pull_max, gpu::max_pipe_length)) {
        return false;
    }
    source_ = reach_source(device_, terms.source, terms.offer.process, *target, total_);
    const bool far = !is_on(gpu, terms.offer);
    if (!source_ || (far && !pays(source_, *target, total_, owner_.has_one_message())) ||
        !take_pipe_side()) {
        source_ = {};
        return false;
    }
    gpu::pipe_work work;
    work.pulls = true;
    work.source = source_.what != nullptr ? &source_.what->view() : nullptr;
    work.source_base = source_.base;
    work.geometry = choose_pull_geometry(total_, share_of_lanes(total_, lanes));
    work.sequence = side_->sequence;

    pulls_ = true;
    begin_drive(work, total_);
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

}  // namespace cuda_nc::uct
