#include "tools/perftest/message/sampling.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>

#include <fmt/core.h>

#include "tools/perftest/message/memory.hpp"
#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {
namespace {

constexpr double sample_time = 50e-6;  // seconds of exchanges in one sample, at least
constexpr double largest_batch = 1000;
constexpr double fewest_samples = 5;

double batch_for(double exchange_time) {
    return std::clamp(sample_time / std::max(exchange_time, 1e-9), 1.0, largest_batch);
}

}  // namespace

std::string agree(messenger &by, const std::string &mine) {
    for (const std::string &one : by.gather(mine)) {
        if (!one.empty()) {
            return one;
        }
    }
    return "";
}

double agree_number(messenger &by, double mine) {
    return std::stod(by.gather(fmt::format("{}", mine)).front());
}

void check_memory_of(const messenger &by, const layout &what, const std::string &memory) {
    if (memory == "gpu" && is_gpu_simulated() && what.kind() == shape::contiguous &&
        by.sends_one_block_as_contiguous()) {
        throw run_error("this MPI cannot send contiguous memory of a simulated GPU");
    }
}

std::vector<std::vector<double>> gather_numbers(messenger &by, const std::vector<double> &mine) {
    std::string text;
    for (double one : mine) {
        text += fmt::format("{} ", one);
    }
    std::vector<std::vector<double>> all;
    for (const std::string &of_rank : by.gather(text)) {
        std::istringstream words(of_rank);
        all.emplace_back();
        for (double one; words >> one;) {
            all.back().push_back(one);
        }
    }
    return all;
}

schedule make_schedule(messenger &by, const message_plan &plan, double exchange_time,
                       double contiguous_time) {
    schedule times;
    times.batch = static_cast<unsigned>(agree_number(by, batch_for(exchange_time)));
    times.contiguous_batch = static_cast<unsigned>(agree_number(by, batch_for(contiguous_time)));
    const double round = exchange_time * times.batch + contiguous_time * times.contiguous_batch;
    times.samples = static_cast<unsigned>(
        agree_number(by, std::clamp(plan.seconds / std::max(round, 1e-9),
                                    std::min<double>(fewest_samples, plan.iterations),
                                    static_cast<double>(plan.iterations))));
    return times;
}

}  // namespace cuda_nc::tools
