#include "tools/perftest/tune/rules.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tools/perftest/tune/rule_trials.hpp"
#include "ucs/exec/kernels/plan/policy.hpp"
#include "ucs/layout/layout_spec.hpp"
#include "ucs/model/predict.hpp"

namespace cuda_nc::tools {
namespace {

// A GPU for which small layouts are large ones.
struct small_gpu {
    model::gpu_profile profile;
    std::vector<layout_ref> layouts;
    std::vector<size_t> misaligned;
    static constexpr unsigned num_sms = 2;

    explicit small_gpu(const rule_group &group) {
        profile.moves.cache_size = 1 << 20;
        for (const tune_point &point : group.points) {
            std::string error;
            layouts.push_back(parse_layout(text_of(point, 8 << 20, 256 << 20), &error));
            EXPECT_NE(layouts.back(), nullptr) << point.text << ": " << error;
            misaligned.push_back(point.misalign);
        }
    }
    // Of all kernels for the layouts, both directions.
    std::string kernels(const gpu::kernel_rules &rules) {
        profile.rules = rules;
        std::string all;
        for (size_t i = 0; i < layouts.size(); ++i) {
            for (auto dir : {gpu::direction::pack, gpu::direction::unpack}) {
                const exec::kernel_choice c =
                    model::choose_kernel(profile, num_sms, *layouts[i], dir, misaligned[i], 0);
                for (uint32_t one : {static_cast<uint32_t>(c.how), c.threads, c.grid, c.unit_log2,
                                     c.reserve, static_cast<uint32_t>(c.deep)}) {
                    all += std::to_string(one) + " ";
                }
            }
        }
        return all;
    }
};

TEST(tune_rules, every_value_that_is_tried_is_allowed_and_decides_about_a_layout) {
    std::set<std::string> tried;
    for (const rule_group &group : rule_groups()) {
        small_gpu gpu(group);
        const std::string usual = gpu.kernels(gpu::usual_rules);
        for (const rule_trial &trial : group.trials) {
            for (const gpu::kernel_rule &rule : gpu::all_kernel_rules) {
                if (rule.value != trial.rule) {
                    continue;
                }
                tried.insert(rule.name);
                for (uint32_t value : trial.values) {
                    gpu::kernel_rules rules;
                    rules.*rule.value = value;
                    EXPECT_TRUE(rule.allows(value)) << rule.name << " " << value;
                    EXPECT_NE(gpu.kernels(rules), usual) << rule.name << " " << value;
                }
            }
        }
    }
    EXPECT_EQ(tried.size(), std::size(gpu::all_kernel_rules));
}

TEST(tune_rules, what_is_found_is_in_force_and_may_be_written) {
    gpu::device *device = gpu::platform::instance().get_device(0);
    if (device == nullptr) {
        GTEST_SKIP() << "no GPU";
    }
    tune_options how;
    how.seconds = 5;
    size_t steps = 0;
    how.progress = [&](double, const std::string &) { ++steps; };
    time_budget budget(how, count_rule_trials());
    model::gpu_profile of = model::default_gpu(device->properties());
    measure_rules(*device, {memory_choice::device, 0, 64 << 20}, "GPU 0", how, &budget, &of);
    EXPECT_EQ(steps, count_rule_trials());
    EXPECT_NE(device->rules(), &of.rules);  // which may go
    EXPECT_TRUE(*device->rules() == of.rules);
    for (const gpu::kernel_rule &one : gpu::all_kernel_rules) {
        EXPECT_TRUE(one.allows(of.rules.*one.value)) << one.name;
    }
    device->set_rules(&gpu::usual_rules);
    EXPECT_EQ(text_of(gpu::usual_rules), "usual");
    of.rules = gpu::usual_rules;
    of.rules.unit_threads = 96;
    EXPECT_EQ(text_of(of.rules), "unit_threads 96 (usual 128)");
}

}  // namespace
}  // namespace cuda_nc::tools
