#include "tools/perftest/tune/rules.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <list>
#include <utility>

#include <fmt/core.h>

#include "tools/perftest/layouts/catalogue.hpp"
#include "tools/perftest/tune/rule_trials.hpp"
#include "ucs/exec/kernels/plan/policy.hpp"
#include "ucs/model/predict.hpp"

namespace cuda_nc::tools {
namespace {

using gpu::direction;
using gpu::kernel_rules;

constexpr double noise = 0.03;           // as a share
constexpr double most_time = 0.25;       // likewise
constexpr double sample = 0.4e-3;        // seconds
constexpr double most_blocks = 1 << 19;  // of a list: they take their time to make
constexpr double far_from_cache = 8;     // times its size; see measure_points()
constexpr unsigned repetitions = 7;

struct rule_layout {
    layout_ref what;
    size_t misalign = 0;
};

// Each point within the cache and beyond, or lists as large as they may be.
std::vector<rule_layout> layouts_of(const rule_group &group, const place &where, double cache) {
    std::vector<rule_layout> all;
    for (const tune_point &point : group.points) {
        const bool list =
            point.what == model::family::listed || point.what == model::family::uneven;
        const double most = list ? most_blocks * point.block * point.touched : INFINITY;
        std::string last;
        for (double times : {1.0, far_from_cache}) {
            const std::string text = text_of(point, std::min(cache * times, most), where.most);
            if (text == std::exchange(last, text)) {
                continue;
            }
            all.push_back({layout_of(text), point.misalign});
        }
    }
    return all;
}

// Whether both launch the same.
bool alike(const exec::kernel_choice &a, const exec::kernel_choice &b) {
    return a.how == b.how && a.word_log2 == b.word_log2 && a.deep == b.deep &&
           a.threads == b.threads && a.grid == b.grid && a.per_thread_block == b.per_thread_block &&
           a.unit_log2 == b.unit_log2 && a.reserve == b.reserve;
}

class rules_scope {
  public:
    rules_scope(gpu::device &device, const kernel_rules &after) : device_(device), after_(after) {}
    ~rules_scope() { device_.set_rules(&after_); }
    void use(const kernel_rules &rules) { device_.set_rules(&rules); }

  private:
    gpu::device &device_;
    const kernel_rules &after_;
};

// So much slower, in two samples, that more of them are a waste of time.
bool hopeless(const std::vector<double> &times, const std::vector<double> &usual) {
    auto best = [](const std::vector<double> &of) { return std::min(of[0], of[1]); };
    return times.size() >= 2 && usual.size() >= 2 && best(times) > 1.3 * best(usual);
}

// What a value does to layouts: logarithms of ratios of times to those by the rules so far.
struct verdict {
    double sum = 0, worst = 0;
    unsigned layouts = 0;

    void add(double ratio) {
        sum += std::log(ratio);
        worst = std::max(worst, std::log(ratio));
        ++layouts;
    }
    double mean() const { return layouts != 0 ? sum / layouts : 0; }
    bool good() const { return mean() < std::log(1 - noise) && worst < std::log(1 + noise); }
};

// More than all, of a ratio's logarithm.
double percent(double logarithm) {
    return 100 * std::expm1(logarithm);
}

class rule_search {
  public:
    rule_search(gpu::device &device, const place &where, const tune_options &how,
                time_budget *budget, model::gpu_profile *of)
        : device_(device), where_(where), how_(how), budget_(*budget), of_(*of) {}

    // The best of the values, which differ in `rule`, or nothing; with its verdict.
    bool find_better(const gpu::kernel_rule &rule, const std::vector<rule_layout> &layouts,
                     const std::vector<kernel_rules> &values, size_t *best_p, verdict *verdict_p) {
        const std::vector<verdict> all = judge(layouts, values);
        bool found = false;
        for (size_t i = 0; i < values.size(); ++i) {
            if (how_.tried && all[i].layouts != 0) {
                how_.tried(
                    fmt::format("{} {}: {:+.1f}% time against {}, {:+.1f}% at worst, on {} layouts",
                                rule.name, values[i].*rule.value, percent(all[i].mean()),
                                of_.rules.*rule.value, percent(all[i].worst), all[i].layouts));
            }
            if (all[i].good() && (!found || all[i].sum < verdict_p->sum)) {
                *best_p = i;
                *verdict_p = all[i];
                found = true;
            }
        }
        // Among many values one is good by chance.
        return found && (*verdict_p = judge(layouts, {values[*best_p]})[0]).good();
    }

  private:
    std::vector<verdict> judge(const std::vector<rule_layout> &layouts,
                               const std::vector<kernel_rules> &values) {
        std::vector<verdict> all(values.size());
        for (const rule_layout &one : layouts) {
            for (direction dir : {direction::pack, direction::unpack}) {
                judge(one, dir, values, &all);
            }
        }
        return all;
    }

    exec::kernel_choice choice_by(const kernel_rules &rules, const rule_layout &one,
                                  direction dir) const {
        model::gpu_profile by;
        by.moves.cache_size = of_.moves.cache_size;
        by.rules = rules;
        return model::choose_kernel(by, device_.properties().num_sms, *one.what, dir, one.misalign,
                                    0);
    }

    void judge(const rule_layout &one, direction dir, const std::vector<kernel_rules> &values,
               std::vector<verdict> *all) {
        std::vector<size_t> concerned;
        const exec::kernel_choice now = choice_by(of_.rules, one, dir);
        for (size_t i = 0; i < values.size(); ++i) {
            if (!alike(now, choice_by(values[i], one, dir))) {
                concerned.push_back(i);
            }
        }
        if (concerned.empty()) {
            return;
        }
        if (budget_.spent() > until_) {
            throw run_error("there is no time left");
        }
        transfer_request request;
        request.what = one.what;
        request.dir = dir;
        request.memory = where_.memory;
        request.misalign = one.misalign;
        request.device = where_.device;
        std::unique_ptr<timed_transfer> moves = make_timed_transfer(request);
        moves->first_use();
        std::vector<std::vector<double>> times(concerned.size() + 1);
        const double once = std::max(1e-8, std::min(moves->run(1), moves->run(1)));
        const auto batch = static_cast<unsigned>(std::min(100.0, std::max(1.0, sample / once)));
        rules_scope in_force(device_, of_.rules);
        for (unsigned r = 0; r < (once > 20 * sample ? 3u : repetitions); ++r) {
            for (size_t k = 0; k < times.size(); ++k) {  // the last is what is so far
                if (hopeless(times[k], times.back())) {
                    continue;
                }
                in_force.use(k < concerned.size() ? values[concerned[k]] : of_.rules);
                times[k].push_back(moves->run(batch));
            }
        }
        const double usual = median_of(std::move(times.back()));
        for (size_t k = 0; k < concerned.size(); ++k) {
            (*all)[concerned[k]].add(median_of(std::move(times[k])) / usual);
        }
    }

    gpu::device &device_;
    const place &where_;
    const tune_options &how_;
    const time_budget &budget_;
    const double until_ = budget_.spent() + most_time;
    const model::gpu_profile &of_;
};

const gpu::kernel_rule &rule_of(const rule_trial &trial) {
    return *std::find_if(std::begin(gpu::all_kernel_rules), std::end(gpu::all_kernel_rules),
                         [&](const gpu::kernel_rule &one) { return one.value == trial.rule; });
}

std::vector<kernel_rules> candidates(const rule_trial &trial, const kernel_rules &now) {
    std::vector<kernel_rules> all;
    for (uint32_t value : trial.values) {
        kernel_rules one = now;
        one.*trial.rule = trial.flips ? now.*trial.rule ^ value : value;
        if (one != now) {
            all.push_back(one);
        }
    }
    return all;
}

}  // namespace

size_t count_rule_trials() {
    size_t trials = 0;
    for (const rule_group &group : rule_groups()) {
        trials += group.trials.size();
    }
    return trials;
}

void follow_rules(gpu::device &device, const gpu::kernel_rules &rules) {
    static std::list<kernel_rules> all;
    device.set_rules(&all.emplace_back(rules));
}

void measure_rules(gpu::device &device, const place &where, const std::string &who,
                   const tune_options &how, time_budget *budget, model::gpu_profile *of) {
    of->rules = gpu::usual_rules;
    device.set_rules(&of->rules);
    rule_search search(device, where, how, budget, of);
    for (const rule_group &group : rule_groups()) {
        std::vector<rule_layout> layouts;
        for (const rule_trial &trial : group.trials) {
            const gpu::kernel_rule &rule = rule_of(trial);
            budget->step(fmt::format("{}: rule {}", who, rule.name), [&] {
                if (layouts.empty()) {
                    layouts = layouts_of(group, where, static_cast<double>(of->moves.cache_size));
                }
                const std::vector<kernel_rules> values = candidates(trial, of->rules);
                size_t best = 0;
                verdict by;
                if (!search.find_better(rule, layouts, values, &best, &by)) {
                    return;
                }
                const uint32_t before = of->rules.*trial.rule;
                of->rules = values[best];
                if (how.found) {
                    how.found(
                        fmt::format("{}: {} {} instead of {}: {:+.1f}% time on {} layouts, "
                                    "{:+.1f}% at worst",
                                    who, rule.name, of->rules.*trial.rule, before,
                                    percent(by.mean()), by.layouts, percent(by.worst)));
                }
            });
        }
    }
    follow_rules(device, of->rules);
}

std::string text_of(const gpu::kernel_rules &rules) {
    std::string text;
    for (const gpu::kernel_rule &one : gpu::all_kernel_rules) {
        if (rules.*one.value != gpu::usual_rules.*one.value) {
            text += fmt::format("{}{} {} (usual {})", text.empty() ? "" : ", ", one.name,
                                rules.*one.value, gpu::usual_rules.*one.value);
        }
    }
    return text.empty() ? "usual" : text;
}

}  // namespace cuda_nc::tools
