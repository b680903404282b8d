#include "tools/perftest/tune/steps.hpp"

#include <array>
#include <chrono>

#include <fmt/core.h>

#include "tools/perftest/layouts/catalogue.hpp"
#include "ucs/model/predict.hpp"

namespace cuda_nc::tools {
namespace {

using gpu::direction;
using model::family;

constexpr double mib = 1 << 20;
constexpr double far_times = 8;  // of what is near: beyond any influence of the cache

// Both directions want the same lists, near and far: those last made are kept.
layout_ref parse(const std::string &text) {
    static std::array<std::pair<std::string, layout_ref>, 2> last;
    for (const auto &one : last) {
        if (one.first == text) {
            return one.second;
        }
    }
    layout_ref what = layout_of(text);
    last[0] = std::exchange(last[1], {text, what});
    return what;
}

// us for a MiB beyond a call's start, with so many bytes touched.
double measure(const tune_point &point, direction dir, const place &where, double touched,
               double start) {
    const std::string text = text_of(point, touched, where.most);
    std::unique_ptr<timed_transfer> moves = ready_transfer(
        text, dir, point.what == family::pinned ? memory_choice::pinned : where.memory,
        where.device, point.misalign);
    const double each = time_each_us([&](unsigned times) { return moves->run(times); });
    const double size = static_cast<double>(parse(text)->packed_size()) / mib;
    return std::max(each - start, each / 10) / size;
}

}  // namespace

double steady_seconds() noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

std::unique_ptr<timed_transfer> ready_transfer(const std::string &text, gpu::direction dir,
                                               memory_choice memory, int device, size_t misalign) {
    transfer_request request;
    request.what = parse(text);
    request.dir = dir;
    request.memory = memory;
    request.device = device;
    request.misalign = misalign;
    std::unique_ptr<timed_transfer> made = make_timed_transfer(request);
    made->first_use();
    return made;
}

double measure_copy(const place &where, double bytes, double start) {
    const std::string text = fmt::format("vector:1,{0},{0}", static_cast<uint64_t>(bytes));
    std::unique_ptr<timed_transfer> moves =
        ready_transfer(text, direction::pack, where.memory, where.device, 0);
    const double each = time_each_us([&](unsigned times) { return moves->plain_copy(times); });
    return std::max(each - start, each / 10) / (bytes / mib);
}

void measure_points(const std::vector<tune_point> &points, const place &where,
                    const std::string &who, time_budget *budget, model::moving *by) {
    const double near = static_cast<double>(by->cache_size), far = near * far_times;
    const double start = model::start_of(*by);
    for (const tune_point &point : points) {
        for (direction dir : {direction::pack, direction::unpack}) {
            model::figure one{point.what, dir, point.align_log2, point.block, 0, 0};
            budget->step(fmt::format("{}: {} {} of {} B", who, model::name_of(point.what),
                                     dir == direction::pack ? "packed" : "unpacked", point.block),
                         [&] {
                             if (point.what == family::pinned) {
                                 one.near = measure(point, dir, where, pinned_bytes, start);
                                 one.far = one.near;
                             } else {
                                 one.near = measure(point, dir, where, near, start);
                                 one.far = measure(point, dir, where, far, start);
                             }
                             by->figures.push_back(one);
                         });
        }
    }
}

void fill_gaps(const std::vector<model::figure> &usual, model::moving *by) {
    const std::vector<model::figure> measured = by->figures;
    for (const model::figure &one : usual) {
        const bool known =
            std::any_of(measured.begin(), measured.end(), [&](const model::figure &other) {
                return other.what == one.what && other.dir == one.dir;
            });
        if (!known) {
            by->figures.push_back(one);
        }
    }
}

}  // namespace cuda_nc::tools
