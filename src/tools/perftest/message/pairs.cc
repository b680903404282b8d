#include "tools/perftest/message/pairs.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "tools/perftest/message/sampling.hpp"
#include "tools/perftest/support/watchdog.hpp"

namespace cuda_nc::tools {
namespace {

pairing partner(const messenger &by) {
    const int half = by.size() / 2;
    if (by.rank() < half) {
        return {by.rank() + half, true};
    }
    return by.rank() < 2 * half ? pairing{by.rank() - half, false} : pairing{};
}

class pairs_measurement : public paired_case {
  public:
    using paired_case::paired_case;

    std::string measure(double *first_use_p) {
        what_.laid_out.fill_source();
        what_.laid_out.fill_target();
        const message_batch reference = {&what_.contiguous, what_.contiguous_type.get(),
                                         what_.window};
        run(reference, 1);
        by_.barrier();
        const double begin = seconds_now();
        const std::unique_ptr<message_type> type = by_.make_type(*what_.layout_of_type);
        const message_batch laid_out = {&what_.laid_out, type.get(), what_.window};
        run(laid_out, 1);
        *first_use_p = seconds_now() - begin;
        std::string fault = agree(by_, verify("first use"));
        if (!fault.empty()) {
            return fault;
        }
        what_.laid_out.fill_target();
        const schedule times = plan_times(laid_out, reference);
        for (unsigned i = 0; i < times.samples; ++i) {
            for (int pair = 0; pair < by_.size() / 2; ++pair) {
                by_.barrier();
                if (with_.peer >= 0 && std::min(with_.peer, by_.rank()) == pair) {
                    alone.push_back(run(laid_out, times.batch));
                }
            }
            by_.barrier();
            together.push_back(run(laid_out, times.batch));
            by_.barrier();
            contiguous.push_back(run(reference, times.contiguous_batch));
        }
        return agree(by_, verify("warm"));
    }

    // Of this rank's pair, sample by sample.
    std::vector<double> alone, together, contiguous;

  private:
    schedule plan_times(const message_batch &laid_out, const message_batch &reference) {
        double time = 0, reference_time = 0;
        for (unsigned i = 0; i < std::max(plan_.warm_up, 1u); ++i) {
            by_.barrier();
            time = run(laid_out, 1) * what_.window;
            by_.barrier();
            reference_time = run(reference, 1) * what_.window;
        }
        // Each sample is taken once for all and once for each pair.
        return make_schedule(by_, plan_, time * (1 + by_.size() / 2), reference_time);
    }
};

}  // namespace

std::vector<message_row> run_pairs(messenger &by, const message_plan &plan, const layout_case &what,
                                   const std::string &test) {
    watch_for(plan.timeout + 60, fmt::format("{} of {}", test, what.text));
    const bool both_ways = test == "pairs-bidir";
    const std::string inner = both_ways ? "bidir" : "bandwidth";
    message_row row = begin_row(plan, what, test);
    row.directions = both_ways ? 2 : 1;
    const pairing with = partner(by);
    std::unique_ptr<prepared_case> prepared;
    row.error = prepare(by, plan, what, inner, with.peer, &prepared, &row);
    if (!row.error.empty()) {
        return {row};
    }
    pairs_measurement measured(by, plan, inner, with, *prepared);
    row.error = measured.measure(&row.first_use);
    const auto alone = gather_numbers(by, measured.alone),
               together = gather_numbers(by, measured.together),
               contiguous = gather_numbers(by, measured.contiguous);
    if (!row.error.empty()) {
        return {row};
    }
    row.verified = plan.verify;
    std::vector<message_row> rows;
    for (int first = 0; first < by.size() / 2; ++first) {
        const int second = first + by.size() / 2;
        const auto of = static_cast<size_t>(first);
        const double peak = summarise(alone[of]).median;
        row.time = summarise(together[of]);
        row.contiguous = summarise(contiguous[of]);
        row.more = {{"first", first},
                    {"second", second},
                    {"alone_us", peak * 1e6},
                    {"share_of_alone", peak / row.time.median}};
        row.note =
            fmt::format("{}-{}: {:.0f}% of alone", first, second, peak / row.time.median * 100);
        rows.push_back(row);
    }
    return rows;
}

}  // namespace cuda_nc::tools
