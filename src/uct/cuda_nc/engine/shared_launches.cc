#include "uct/cuda_nc/engine/shared_launches.hpp"

#include <algorithm>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/gpu/mover_pulse.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/engine/launch_client.hpp"
#include "uct/cuda_nc/engine/stream_pool.hpp"

namespace cuda_nc::uct {
namespace {

// Null: that GPU has none.
gpu::mover *mover_of(int device) noexcept {
    gpu::device *where = gpu::platform::instance().get_device(device);
    return where != nullptr ? where->get_mover() : nullptr;
}

}  // namespace

bool shared_launches::running::may_have_left() const noexcept {
    return is_order ? mark.may_show() : client->has_left();
}

bool shared_launches::add(client_list &to, launch_client &ready) noexcept try {
    const size_t room = in_flight_.size() + launches_.size() + orders_.size() + 1;
    if (in_flight_.capacity() < room) {
        in_flight_.reserve(2 * room);
    }
    to.push_back(&ready);
    has_new_ = true;
    return true;
} catch (const std::bad_alloc &) {
    return false;
}

bool shared_launches::remove(client_list &from, const launch_client &one) noexcept {
    const auto found = std::find(from.begin(), from.end(), &one);
    if (found == from.end()) {
        return false;
    }
    from.erase(found);
    return true;
}

void shared_launches::remove(const launch_client &stopped) noexcept {
    if (!remove(orders_, stopped)) {
        remove(launches_, stopped);
    }
}

void shared_launches::left(const launch_client &ended) noexcept {
    const auto found = std::find_if(in_flight_.begin(), in_flight_.end(),
                                    [&](const running &one) { return one.client == &ended; });
    if (found != in_flight_.end()) {
        *found = in_flight_.back();
        in_flight_.pop_back();
    }
}

// The first, and those behind it on its GPU, together. Returns who has launched a set of them, or
// null.
gpu::mover *shared_launches::give_some() noexcept {
    constexpr size_t most = gpu::most_of_set;
    launch_client *asked[most], *refused[most];
    gpu::mover::ticket tickets[most];
    // Each order is made when it is described: mostly there is one.
    alignas(gpu::move_order) char room[most * sizeof(gpu::move_order)];
    auto *orders = reinterpret_cast<gpu::move_order *>(room);
    const int device = orders_.front()->device();
    gpu::mover *by = mover_of(device);
    size_t number = 0, num_asked = 0, num_refused = 0;
    for (; number < orders_.size() && number < most; ++number) {
        launch_client *one = orders_[number];
        if (one->device() != device) {
            break;
        }
        if (by != nullptr && one->describe(new (&orders[num_asked]) gpu::move_order)) {
            asked[num_asked++] = one;
        } else {
            refused[num_refused++] = one;
        }
    }
    orders_.erase(orders_.begin(), orders_.begin() + static_cast<ptrdiff_t>(number));
    gpu::giving how;
    how.may_launch_set = true;
    const gpu::given given =
        num_asked != 0 ? by->give(orders, num_asked, tickets, how) : gpu::given();
    if (given.launched_set) {
        gpu::beat_pulses(gpu::beat::progress);  // a launch takes microseconds
        count(counters::all().launches);
        counters::all().launched_sides.fetch_add(given.number, std::memory_order_relaxed);
        counters::all().of_sets.fetch_add(given.number, std::memory_order_relaxed);
    } else {
        counters::all().orders.fetch_add(given.number, std::memory_order_relaxed);
    }
    for (size_t i = 0; i < num_asked; ++i) {
        if (given.number != 0 && tickets[i] != 0) {
            in_flight_.push_back({asked[i], true, by->mark_of(tickets[i])});
            asked[i]->ordered(*by, tickets[i]);
        } else {
            refused[num_refused++] = asked[i];
        }
    }
    for (size_t i = 0; i < num_refused; ++i) {
        refused[i]->order_refused();
    }
    return given.launched_set ? by : nullptr;
}

void shared_launches::give_early() noexcept {
    constexpr size_t enough_work = 4, enough_orders = 4;
    const bool enough = in_flight_.size() < enough_work || orders_.size() >= enough_orders;
    if (!orders_.empty() && enough && takes_orders_at_once()) {
        give_orders();
    }
}

bool shared_launches::takes_orders_at_once() const noexcept {
    const launch_client &first = *orders_.front();
    const gpu::mover *by = first.may_share() ? mover_of(first.device()) : nullptr;
    return by == nullptr || by->takes_at_once();
}

// What waits for a stream was looked at before.
bool shared_launches::has_room_for_others() const noexcept {
    if (!has_new_) {
        return false;
    }
    return (!orders_.empty() && !takes_orders_at_once()) ||
           std::any_of(launches_.begin(), launches_.end(),
                       [](const launch_client *one) { return one->may_share(); });
}

// Where others are to be launched, the kernel that is expected to be of use comes behind these.
void shared_launches::give_orders() noexcept {
    gpu::mover *launched = nullptr;
    while (!orders_.empty()) {
        launched = give_some();
    }
    if (launched != nullptr && launches_.empty()) {
        launched->expect();
    }
}

size_t shared_launches::launch_some(uint64_t (&messages)[gpu::max_pipe_sides]) noexcept {
    if (launches_.empty()) {
        return 0;
    }
    // The first, and the others on its GPU that can be launched with it.
    const int device = launches_.front()->device();
    bool later;
    std::shared_ptr<pooled_stream> stream = acquire_stream(device, &later);
    if (stream == nullptr && later) {
        return 0;  // until a stream returns
    }
    launch_client *clients[gpu::max_pipe_sides];
    gpu::pipe_work work[gpu::max_pipe_sides];
    size_t number = 0, handled = 0;
    for (size_t i = 0; i < launches_.size() && number + handled < gpu::max_pipe_sides;) {
        launch_client *one = launches_[i];
        if (one->device() != device) {
            ++i;
            continue;
        }
        ucs_status_t status = UCS_ERR_NO_RESOURCE;
        if (stream != nullptr) {
            status = one->prepare(stream->get(), &work[number]);
        }
        if (status == UCS_OK) {
            clients[number++] = one;
            ++i;
        } else {
            remove(launches_, *one);
            messages[handled++] = one->message();
            one->launch_failed(status);
        }
    }
    if (number == 0) {
        return handled;
    }
    size_t launched = 0;
    ucs_status_t status = stream->get().launch(work, number, &launched);
    size_t done = status == UCS_OK ? launched : 1;  // then the others are tried without the first
    for (size_t i = 0; i < done; ++i) {
        remove(launches_, *clients[i]);
        messages[handled++] = clients[i]->message();
        if (status == UCS_OK) {
            in_flight_.push_back({clients[i], false, {}});
            clients[i]->launched(stream);
        } else {
            clients[i]->launch_failed(status);
        }
    }
    if (status == UCS_OK) {
        gpu::beat_pulses(gpu::beat::progress);  // a launch takes microseconds
        count(counters::all().launches);
        counters::all().launched_sides.fetch_add(launched, std::memory_order_relaxed);
        if (gpu::mover *by = mover_of(device)) {
            by->expect();
        }
    }
    return handled;
}

}  // namespace cuda_nc::uct
