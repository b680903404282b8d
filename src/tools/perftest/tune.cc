#include "tools/perftest/tune.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <new>

#include <fmt/core.h>

#include "tools/perftest/mover.hpp"
#include "tools/perftest/report.hpp"
#include "tools/perftest/tune_points.hpp"
#include "ucs/layout/layout_spec.hpp"

namespace cuda_nc::tools {
namespace {

using gpu::direction;
using model::family;
using model::moving;

constexpr double mib = 1 << 20, us = 1e6;
constexpr double far_times = 8;           // of what is near: beyond any influence of the cache
constexpr double pinned_bytes = 4 << 20;  // enough for the bus
constexpr direction both[] = {direction::pack, direction::unpack};

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double median_of(std::vector<double> samples) {
    std::sort(samples.begin(), samples.end());
    return samples[samples.size() / 2];
}

// Microseconds of one of many calls after each other: samples of a millisecond or two.
template <class Action>
double time_each(Action &&action) {
    constexpr double sample = 1.5e-3;
    action(1u);
    const double once = std::max(1e-8, action(1u));
    const auto batch = static_cast<unsigned>(std::min(40.0, std::max(1.0, sample / once)));
    std::vector<double> samples;
    for (unsigned i = 0; i < (once > 20 * sample ? 3u : 5u); ++i) {
        samples.push_back(action(batch));
    }
    return median_of(std::move(samples)) * us;
}

layout_ref parse(const std::string &text) {
    std::string error;
    layout_ref what = parse_layout(text, &error);
    if (what == nullptr) {
        throw run_error(fmt::format("layout {}: {}", text, error));
    }
    return what;
}

std::unique_ptr<mover> ready_mover(const std::string &text, direction dir, memory_choice memory,
                                   int device, size_t misalign) {
    mover_request request;
    request.what = parse(text);
    request.dir = dir;
    request.memory = memory;
    request.device = device;
    request.misalign = misalign;
    std::unique_ptr<mover> made = make_mover(request);
    made->first_use();
    return made;
}

// Steps of a measurement that has an end.
class clockwork {
  public:
    clockwork(const tune_options &how, size_t steps) : how_(how), steps_(steps) {}

    // False, and counted, where there is no time for the step or it cannot be made.
    template <class Action>
    bool step(const std::string &name, Action &&action) {
        if (how_.progress) {
            how_.progress(static_cast<double>(done_) / static_cast<double>(steps_), name);
        }
        ++done_;
        if (seconds_now() - begin_ < how_.seconds &&
            trouble_of(std::forward<Action>(action)).empty()) {
            return true;
        }
        ++left_out_;
        return false;
    }
    unsigned left_out() const { return left_out_; }

  private:
    const tune_options &how_;
    const size_t steps_;
    const double begin_ = seconds_now();
    size_t done_ = 0;
    unsigned left_out_ = 0;
};

struct place {
    memory_choice memory = memory_choice::host;
    int device = 0;
    double most = 0;  // bytes on the laid-out side
};

// us for a MiB beyond what a call costs, with so many bytes touched.
double measure(const tune_point &point, direction dir, const place &where, double touched,
               double call) {
    const std::string text = text_of(point, touched, where.most);
    std::unique_ptr<mover> moves =
        ready_mover(text, dir, point.what == family::pinned ? memory_choice::pinned : where.memory,
                    where.device, point.misalign);
    const double each = time_each([&](unsigned times) { return moves->transfer(times); });
    const double size = static_cast<double>(parse(text)->packed_size()) / mib;
    return std::max(each - call, each / 10) / size;
}

double measure_copy(const place &where, double bytes, double call) {
    const std::string text = fmt::format("vector:1,{0},{0}", static_cast<uint64_t>(bytes));
    std::unique_ptr<mover> moves =
        ready_mover(text, direction::pack, where.memory, where.device, 0);
    const double each = time_each([&](unsigned times) { return moves->plain_copy(times); });
    return std::max(each - call, each / 10) / (bytes / mib);
}

void measure_points(const std::vector<tune_point> &points, const place &where,
                    const std::string &who, clockwork *clock, moving *by) {
    const double near = static_cast<double>(by->cache_size), far = near * far_times;
    for (const tune_point &point : points) {
        for (direction dir : both) {
            model::figure one{point.what, dir, point.align_log2, point.block, 0, 0};
            clock->step(fmt::format("{}: {} {} of {} B", who, model::name_of(point.what),
                                    dir == direction::pack ? "packed" : "unpacked", point.block),
                        [&] {
                            if (point.what == family::pinned) {
                                one.near = measure(point, dir, where, pinned_bytes, by->call);
                                one.far = one.near;
                            } else {
                                one.near = measure(point, dir, where, near, by->call);
                                one.far = measure(point, dir, where, far, by->call);
                            }
                            by->figures.push_back(one);
                        });
        }
    }
}

moving measure_host(clockwork *clock) {
    moving by = model::default_host();
    const moving usual = by;
    by.figures.clear();
    const place where{memory_choice::host, 0, 256.0 * mib};
    clock->step("host: calls and copies", [&] {
        auto tiny = ready_mover("vector:4,8,16", direction::pack, memory_choice::host, 0, 0);
        by.call = std::max(1e-3, time_each([&](unsigned n) { return tiny->transfer(n * 50); }));
        by.near_copy = measure_copy(where, static_cast<double>(by.cache_size) / 2, by.call);
        by.far_copy = measure_copy(where, static_cast<double>(by.cache_size) * 8, by.call);
    });
    measure_points(host_points(), where, "host", clock, &by);
    if (by.figures.empty()) {
        by.figures = usual.figures;
    }
    return by;
}

// The clocks rise while it works.
void warm_up(const place &where) {
    auto moves = ready_mover("vector:64K,64,128", direction::pack, where.memory, where.device, 0);
    for (const double begin = seconds_now(); seconds_now() - begin < 0.2;) {
        moves->transfer(20);
    }
}

void measure_calls(const place &where, model::gpu_profile *of) {
    auto tiny = ready_mover("vector:64,8,16", direction::pack, where.memory, where.device, 0);
    of->moves.call = time_each([&](unsigned) { return tiny->transfer(100); });
    std::vector<double> singles;
    for (int i = 0; i < 51; ++i) {
        singles.push_back(tiny->transfer(1) * us);
    }
    of->completion = median_of(std::move(singles));
    // The sizes that a copy within the cache has, and one far beyond.
    const double cache = static_cast<double>(of->moves.cache_size);
    of->moves.near_copy =
        measure_copy(where, std::exp2(std::floor(std::log2(cache / 3))), of->moves.call);
    of->moves.far_copy = measure_copy(where, std::min(cache * 3, where.most), of->moves.call);
}

void measure_bus(const place &where, model::gpu_profile *of) {
    const place bus{memory_choice::pinned, where.device, where.most};
    auto copy_of = [&](direction dir, double bytes, unsigned times) {
        auto moves = ready_mover(fmt::format("vector:1,{0},{0}", static_cast<uint64_t>(bytes)), dir,
                                 bus.memory, bus.device, 0);
        if (times != 0) {
            std::vector<double> singles;
            for (unsigned i = 0; i < times; ++i) {
                singles.push_back(moves->plain_copy(1) * us);
            }
            return median_of(std::move(singles));
        }
        return time_each([&](unsigned n) { return moves->plain_copy(n); });
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
    return time_each([&](unsigned times) {
               const double begin = seconds_now();
               for (unsigned i = 0; i < times; ++i) {
                   check(stream->copy(target->address(), source->address(), bytes), "a copy");
               }
               check(stream->record(*done), "marking the stream");
               check(done->synchronize(), "waiting for the GPU");
               return (seconds_now() - begin) / times;
           }) /
           (static_cast<double>(bytes) / mib);
}

// False: there was no time for it, or it does not work.
bool measure_gpu(gpu::device &device, clockwork *clock, model::gpu_profile *of_p) {
    const gpu::device_properties &has = device.properties();
    model::gpu_profile &of = *of_p = model::default_gpu(has);
    const std::string who = fmt::format("GPU {}", has.ordinal);
    const place where{memory_choice::device, has.ordinal,
                      std::min(2048.0 * mib, static_cast<double>(has.memory_size) / 8)};
    const bool begun = clock->step(who + ": calls and copies", [&] {
        warm_up(where);
        measure_calls(where, &of);
    });
    if (!begun) {
        return false;
    }
    clock->step(who + ": the bus", [&] { measure_bus(where, &of); });
    const std::vector<model::figure> usual = std::move(of.moves.figures);
    of.moves.figures.clear();
    measure_points(gpu_points(), where, who, clock, &of.moves);
    if (of.moves.figures.empty()) {
        of.moves.figures = usual;
    }
    of.measured = true;
    return true;
}

}  // namespace

model::machine_profile measure_machine(const tune_options &how, unsigned *left_out_p) {
    gpu::platform &platform = gpu::platform::instance();
    const auto gpus = static_cast<size_t>(std::max(0, platform.num_devices()));
    clockwork clock(how, 1 + 2 * host_points().size() + gpus * (2 + 2 * gpu_points().size()) +
                             gpus * gpus - gpus);
    model::machine_profile made;
    made.measured = true;
    made.backend = platform.name();
    made.date = now();
    for (size_t i = 0; i < gpus; ++i) {
        if (gpu::device *device = platform.get_device(static_cast<int>(i))) {
            model::gpu_profile of;
            if (measure_gpu(*device, &clock, &of)) {
                made.gpus.push_back(std::move(of));
            }
        }
    }
    for (size_t i = 0; i < gpus; ++i) {
        for (size_t k = 0; k < gpus; ++k) {
            gpu::device *from = platform.get_device(static_cast<int>(i));
            gpu::device *to = platform.get_device(static_cast<int>(k));
            if (i == k || from == nullptr || to == nullptr ||
                !from->can_access_peer(static_cast<int>(k))) {
                continue;
            }
            clock.step(fmt::format("GPU {} to GPU {}", i, k), [&] {
                const size_t bytes =
                    std::min(size_t(64) << 20, from->properties().memory_size / 64);
                made.links.push_back({from->properties().bus_id, to->properties().bus_id,
                                      measure_link(*from, *to, bytes)});
            });
        }
    }
    made.host_moves = measure_host(&clock);
    *left_out_p = clock.left_out();
    return made;
}

}  // namespace cuda_nc::tools
