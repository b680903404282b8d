// The steps that tuning is made of.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/perftest/support/timed_transfer.hpp"
#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/support/statistics.hpp"
#include "tools/perftest/tune/tune.hpp"
#include "tools/perftest/tune/points.hpp"

namespace cuda_nc::tools {

// Bytes that a bus is measured with.
constexpr double pinned_bytes = 4 << 20;

double steady_seconds() noexcept;

// Microseconds of one of many calls after each other: the least of samples of a millisecond or two.
// What else runs on a machine only adds to it.
template <class Action>
double time_each_us(Action &&action) {
    constexpr double sample = 1.5e-3;
    action(1u);
    const double once = std::max(1e-8, action(1u));
    const auto batch = static_cast<unsigned>(std::min(40.0, std::max(1.0, sample / once)));
    double least = once;
    for (unsigned i = 0; i < (once > 20 * sample ? 3u : 5u); ++i) {
        least = std::min(least, action(batch));
    }
    return least * 1e6;
}

// Has run once. Throws run_error.
std::unique_ptr<timed_transfer> ready_transfer(const std::string &text, gpu::direction dir,
                                               memory_choice memory, int device, size_t misalign);

// Steps of a measurement that has an end.
class time_budget {
  public:
    time_budget(const tune_options &how, size_t steps) : how_(how), steps_(steps) {}

    // False, and counted, where there is no time for the step or it cannot be made.
    template <class Action>
    bool step(const std::string &name, Action &&action) {
        if (how_.progress) {
            how_.progress(static_cast<double>(done_) / static_cast<double>(steps_), name);
        }
        ++done_;
        if (steady_seconds() - begin_ < how_.seconds &&
            failure_of(std::forward<Action>(action)).empty()) {
            return true;
        }
        ++left_out_;
        return false;
    }
    unsigned left_out() const { return left_out_; }
    // Of the time, as a share.
    double spent() const { return (steady_seconds() - begin_) / how_.seconds; }

  private:
    const tune_options &how_;
    const size_t steps_;
    const double begin_ = steady_seconds();
    size_t done_ = 0;
    unsigned left_out_ = 0;
};

struct place {
    memory_choice memory = memory_choice::host;
    int device = 0;
    double most = 0;  // bytes on the laid-out side
};

// us for a MiB of a plain copy beyond a call's start.
double measure_copy(const place &where, double bytes, double start);

// Near and far figures of each point, both directions; needs `call` and `cache_size` of *by.
void measure_points(const std::vector<tune_point> &points, const place &where,
                    const std::string &who, time_budget *budget, model::moving *by);

// Kinds of layouts that there was no time for keep their usual figures.
void fill_gaps(const std::vector<model::figure> &usual, model::moving *by);

}  // namespace cuda_nc::tools
