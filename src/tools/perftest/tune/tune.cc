#include "tools/perftest/tune/tune.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/core.h>

#include "tools/perftest/support/results.hpp"
#include "tools/perftest/tune/rules.hpp"
#include "tools/perftest/tune/steps.hpp"
#include "ucs/model/predict.hpp"

namespace cuda_nc::tools {
namespace {

using gpu::direction;
using model::moving;

constexpr double mib = 1 << 20, us = 1e6;

moving measure_host(time_budget *budget) {
    moving by = model::default_host();
    const moving usual = by;
    by.figures.clear();
    const place where{memory_choice::host, 0, 256.0 * mib};
    budget->step("host: calls and copies", [&] {
        auto tiny = ready_transfer("vector:4,8,16", direction::pack, memory_choice::host, 0, 0);
        by.call = std::max(1e-3, time_each_us([&](unsigned n) { return tiny->run(n * 50); }));
        by.near_copy =
            measure_copy(where, static_cast<double>(by.cache_size) / 2, model::start_of(by));
        by.far_copy =
            measure_copy(where, static_cast<double>(by.cache_size) * 8, model::start_of(by));
    });
    measure_points(host_points(), where, "host", budget, &by);
    fill_gaps(usual.figures, &by);
    return by;
}

// The clocks rise while it works.
void warm_up(const place &where) {
    auto moves =
        ready_transfer("vector:64K,64,128", direction::pack, where.memory, where.device, 0);
    for (const double begin = steady_seconds(); steady_seconds() - begin < 0.2;) {
        moves->run(20);
    }
}

double measure_call(timed_transfer &tiny) {
    return time_each_us([&](unsigned) { return tiny.run(100); });
}

std::unique_ptr<timed_transfer> tiny_transfer(const place &where) {
    return ready_transfer("vector:64,8,16", direction::pack, where.memory, where.device, 0);
}

void measure_calls(const place &where, model::gpu_profile *of) {
    auto tiny = tiny_transfer(where);
    of->moves.call = measure_call(*tiny);
    std::vector<double> singles;
    for (int i = 0; i < 51; ++i) {
        singles.push_back(tiny->run(1) * us);
    }
    of->completion = median_of(std::move(singles));
    // The sizes that a copy within the cache has, and one far beyond.
    const double cache = static_cast<double>(of->moves.cache_size);
    of->moves.near_copy = measure_copy(where, std::exp2(std::floor(std::log2(cache / 3))),
                                       model::start_of(of->moves));
    of->moves.far_copy =
        measure_copy(where, std::min(cache * 3, where.most), model::start_of(of->moves));
}

void measure_bus(const place &where, model::gpu_profile *of) {
    const place bus{memory_choice::pinned, where.device, where.most};
    auto copy_of = [&](direction dir, double bytes, unsigned times) {
        auto moves = ready_transfer(fmt::format("vector:1,{0},{0}", static_cast<uint64_t>(bytes)),
                                    dir, bus.memory, bus.device, 0);
        if (times != 0) {
            std::vector<double> singles;
            for (unsigned i = 0; i < times; ++i) {
                singles.push_back(moves->plain_copy(1) * us);
            }
            return median_of(std::move(singles));
        }
        return time_each_us([&](unsigned n) { return moves->plain_copy(n); });
    };
    of->copy_completion = copy_of(direction::pack, 64, 31);
    of->down = copy_of(direction::pack, 4 * pinned_bytes, 0) / (4 * pinned_bytes / mib);
    of->up = copy_of(direction::unpack, 4 * pinned_bytes, 0) / (4 * pinned_bytes / mib);
}

void check(ucs_status_t status, const char *what) {
    if (status != UCS_OK) {
        throw run_error(fmt::format("{} failed: {}", what, status_text(status)));
    }
}

double measure_link(gpu::device &from, gpu::device &to, size_t bytes) {
    std::unique_ptr<gpu::memory> source, target;
    std::unique_ptr<gpu::event> done;
    std::unique_ptr<gpu::stream> stream;  // goes first: waits for its work
    check(from.allocate(bytes, &source), "GPU memory");
    check(to.allocate(bytes, &target), "GPU memory");
    check(from.create_event(&done), "making an event");
    check(from.create_stream(&stream), "making a stream");
    return time_each_us([&](unsigned times) {
               const double begin = steady_seconds();
               for (unsigned i = 0; i < times; ++i) {
                   check(stream->copy(target->address(), source->address(), bytes), "a copy");
               }
               check(stream->record(*done), "marking the stream");
               check(done->synchronize(), "waiting for the GPU");
               return (steady_seconds() - begin) / times;
           }) /
           (static_cast<double>(bytes) / mib);
}

place memory_of(const gpu::device_properties &has) {
    return {memory_choice::device, has.ordinal,
            std::min(2048.0 * mib, static_cast<double>(has.memory_size) / 8)};
}

std::string name_of(const gpu::device_properties &has) {
    return fmt::format("GPU {}", has.ordinal);
}

// False: there was no time for it, or it does not work.
bool measure_gpu(gpu::device &device, time_budget *budget, model::gpu_profile *of) {
    const gpu::device_properties &has = device.properties();
    *of = model::default_gpu(has);
    const std::string who = name_of(has);
    const place where = memory_of(has);
    const bool begun = budget->step(who + ": calls and copies", [&] {
        warm_up(where);
        measure_calls(where, of);
    });
    if (!begun) {
        return false;
    }
    budget->step(who + ": the bus", [&] { measure_bus(where, of); });
    of->measured = true;
    return true;
}

// Kernels are as fast on GPUs of one name: they are measured on the first, with the rules that are
// found.
void measure_kernels(gpu::device &device, const model::gpu_profile *first, const tune_options &how,
                     time_budget *budget, model::gpu_profile *of) {
    for (; first != of; ++first) {
        if (first->name == of->name) {
            of->moves.figures = first->moves.figures;
            of->rules = first->rules;
            follow_rules(device, of->rules);
            return;
        }
    }
    const std::string who = name_of(device.properties());
    const place where = memory_of(device.properties());
    measure_rules(device, where, who, how, budget, of);
    const std::vector<model::figure> usual = std::move(of->moves.figures);
    of->moves.figures.clear();
    measure_points(gpu_points(), where, who, budget, &of->moves);
    fill_gaps(usual, &of->moves);
    // A host may have been busy when it was measured first.
    budget->step(who + ": calls again", [&] {
        of->moves.call = std::min(of->moves.call, measure_call(*tiny_transfer(where)));
    });
}

size_t count_names(gpu::platform &platform) {
    std::set<std::string> names;
    for (int i = 0; i < platform.num_devices(); ++i) {
        const gpu::device *device = platform.get_device(i);
        names.insert(device != nullptr ? device->properties().name : "");
    }
    return names.size();
}

}  // namespace

model::machine_profile measure_machine(const tune_options &how, unsigned *left_out_p) {
    gpu::platform &platform = gpu::platform::instance();
    const auto gpus = static_cast<size_t>(std::max(0, platform.num_devices()));
    time_budget budget(
        how, 1 + 2 * host_points().size() +
                 count_names(platform) * (count_rule_trials() + 2 * gpu_points().size() + 1) +
                 gpus + gpus * gpus);
    model::machine_profile made;
    made.measured = true;
    made.backend = platform.name();
    made.date = now();
    std::vector<gpu::device *> measured;
    for (size_t i = 0; i < gpus; ++i) {
        if (gpu::device *device = platform.get_device(static_cast<int>(i))) {
            model::gpu_profile of;
            if (measure_gpu(*device, &budget, &of)) {
                made.gpus.push_back(std::move(of));
                measured.push_back(device);
            }
        }
    }
    for (size_t i = 0; i < measured.size(); ++i) {
        measure_kernels(*measured[i], made.gpus.data(), how, &budget, &made.gpus[i]);
    }
    for (size_t i = 0; i < gpus; ++i) {
        for (size_t k = 0; k < gpus; ++k) {
            gpu::device *from = platform.get_device(static_cast<int>(i));
            gpu::device *to = platform.get_device(static_cast<int>(k));
            if (i == k || from == nullptr || to == nullptr ||
                !from->can_access_peer(static_cast<int>(k))) {
                continue;
            }
            budget.step(fmt::format("GPU {} to GPU {}", i, k), [&] {
                const size_t bytes =
                    std::min(size_t(64) << 20, from->properties().memory_size / 64);
                made.links.push_back({from->properties().bus_id, to->properties().bus_id,
                                      measure_link(*from, *to, bytes)});
            });
        }
    }
    made.host_moves = measure_host(&budget);
    *left_out_p = budget.left_out();
    return made;
}

}  // namespace cuda_nc::tools
