// Statistics of samples. This header needs nothing else of the project: benchmarks that any MPI's
// compiler builds include it too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace cuda_nc::tools {

// `sorted` ascends and has at least one sample.
inline double percentile(const std::vector<double> &sorted, unsigned percent) {
    return sorted[(sorted.size() - 1) * percent / 100];
}

// At least one sample; of an even number the upper of the two in the middle.
inline double median_of(std::vector<double> samples) {
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    return *middle;
}

// In the samples' unit. With a probability of 95% the median of more samples would lie between
// median_low and median_high.
struct summary {
    double least = 0, p5 = 0, p10 = 0, median = 0, p90 = 0, p95 = 0, p99 = 0, most = 0;
    double median_low = 0, median_high = 0;
    size_t samples = 0;
};

// All zero where there are no samples.
inline summary summarise(std::vector<double> samples) {
    summary s;
    if (samples.empty()) {
        return s;
    }
    std::sort(samples.begin(), samples.end());
    const size_t last = samples.size() - 1;
    s.samples = samples.size();
    s.least = samples.front();
    s.p5 = percentile(samples, 5);
    s.p10 = percentile(samples, 10);
    s.median = samples[samples.size() / 2];
    s.p90 = samples[last - last * 10 / 100];
    s.p95 = percentile(samples, 95);
    s.p99 = percentile(samples, 99);
    s.most = samples.back();
    // The number of samples below the true median is binomial: ranks 1.96 deviations off the
    // middle.
    const double middle = static_cast<double>(last) / 2,
                 reach = 0.98 * std::sqrt(static_cast<double>(samples.size()));
    s.median_low = samples[static_cast<size_t>(std::max(0.0, std::floor(middle - reach)))];
    s.median_high = samples[std::min(last, static_cast<size_t>(std::ceil(middle + reach)))];
    return s;
}

}  // namespace cuda_nc::tools
