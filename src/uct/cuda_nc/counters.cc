#include "uct/cuda_nc/counters.hpp"

#include <string>

#include "ucs/base/statistics.hpp"
#include "uct/cuda_nc/memory/quarantine.hpp"

namespace cuda_nc::uct {
namespace {

std::string describe_one_sided() {
    const counters &c = counters::all();
    auto part = [](const char *where, const counters::one_sided &what) {
        return std::string(where) + ": " + std::to_string(what.puts) + " puts and " +
               std::to_string(what.gets) + " gets in " + std::to_string(what.lists) + " lists, " +
               std::to_string(what.layout_orders) + " of them from layout to layout" +
               (what.given_lists != 0
                    ? ", " + std::to_string(what.given_lists) + " by orders to a mover"
                    : "");
    };
    std::string text;
    if (c.on_gpus.lists != 0) {
        text = "One-sided, " + part("GPU to GPU", c.on_gpus);
    }
    if (c.on_host.lists != 0) {
        text += (text.empty() ? "One-sided, " : "; ") + part("host memory", c.on_host);
    }
    return text;
}

std::string describe_mappings() {
    const uint64_t made = counters::all().mappings;
    return made == 0 ? "" : "Peers' GPU memory: mapped " + std::to_string(made) + " times";
}

std::string describe() {
    const counters &c = counters::all();
    auto text = [](const std::atomic<uint64_t> &what) {
        return std::to_string(what.load(std::memory_order_relaxed));
    };
    if (c.sent_by_pull + c.received_by_pull + c.sent_by_pipe + c.sent_by_slots +
            c.sent_by_host_slots + c.received_by_pipe + c.received_by_slots +
            c.received_by_host_slots + c.sent_by_network + c.received_by_network + c.sent_straight +
            c.received_straight + c.declined + c.abandoned ==
        0) {
        return {};
    }
    return "GPU to GPU: sent " + text(c.sent_by_pull) + " by pull, " + text(c.sent_by_pipe) +
           " by pipe, " + text(c.sent_by_slots) + " by slots, " + text(c.sent_by_host_slots) +
           " by host slots, " + text(c.sent_by_network) + " by network slots, " +
           text(c.sent_straight) + " straight; received " + text(c.received_by_pull) +
           " by pull (" + text(c.received_by_copy) + " by copy engines), " +
           text(c.received_by_pipe) + " by pipe, " + text(c.received_by_slots) + " by slots, " +
           text(c.received_by_host_slots) + " by host slots, " + text(c.received_by_network) +
           " by network slots, " + text(c.received_straight) + " straight; " + text(c.early) +
           " offers taken early, " + text(c.declined) + " declined, " + text(c.abandoned) +
           " messages abandoned, " + text(c.launched_sides) + " sides of pipes in " +
           text(c.launches) + " launches, " + text(c.of_sets) + " sides in sets, " +
           text(c.orders) + " orders to a mover, " + text(c.relaunches) + " relaunches, " +
           std::to_string(quarantined()) + " pieces of memory in quarantine";
}

}  // namespace

counters &counters::all() noexcept {
    static auto *only = new counters;  // read during exit
    return *only;
}

void counters::report_at_exit() noexcept {
    add_statistics_source(describe);
    add_statistics_source(describe_one_sided);
    add_statistics_source(describe_mappings);
}

}  // namespace cuda_nc::uct
