#include "tools/perftest/tune/check.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/core.h>

#include "tools/perftest/layouts/catalogue.hpp"
#include "tools/perftest/support/statistics.hpp"
#include "tools/perftest/support/timed_transfer.hpp"
#include "ucs/model/predict.hpp"

namespace cuda_nc::tools {
namespace {

// As `nc_perftest pack` measures: the median of 11 samples, 20 calls each on a GPU.
double measure(const layout_ref &what, gpu::direction dir, bool on_gpu, size_t misalign) {
    transfer_request request;
    request.what = what;
    request.dir = dir;
    request.memory = on_gpu ? memory_choice::device : memory_choice::host;
    request.misalign = misalign;
    std::unique_ptr<timed_transfer> moves = make_timed_transfer(request);
    moves->first_use();
    const unsigned batch = on_gpu ? 20 : 1;
    moves->run(batch);
    std::vector<double> samples;
    for (int i = 0; i < 11; ++i) {
        samples.push_back(moves->run(batch));
    }
    return median_of(std::move(samples)) * 1e6;
}

void print(const checked_row &row) {
    if (!row.error.empty()) {
        fmt::print("{:<24} {:<6} {}\n", row.layout, row.direction, row.error);
    } else {
        fmt::print("{:<24} {:<6} {:>10.1f} {:>10.1f} {:>6.2f}{}\n", row.layout, row.direction,
                   row.measured, row.predicted, row.ratio(), row.near() ? "" : "  off");
    }
    std::fflush(stdout);
}

size_t count_near(const std::vector<checked_row> &rows) {
    return static_cast<size_t>(
        std::count_if(rows.begin(), rows.end(), [](const checked_row &row) { return row.near(); }));
}

double percent_near(const std::vector<checked_row> &rows) {
    return 100.0 * static_cast<double>(count_near(rows)) /
           static_cast<double>(std::max<size_t>(1, rows.size()));
}

}  // namespace

std::vector<checked_row> check_predictions(const model::machine_profile &profile, bool on_gpu,
                                           const std::vector<named_layout> &layouts) {
    fmt::print("{:<24} {:<6} {:>10} {:>10} {:>6}\n", "layout", "", "is us", "predicted", "ratio");
    std::vector<checked_row> rows;
    for (const named_layout &named : layouts) {
        for (gpu::direction dir : {gpu::direction::pack, gpu::direction::unpack}) {
            checked_row row;
            row.layout = named.name;
            row.text = named.text;
            row.misalign = named.misalign;
            row.direction = dir == gpu::direction::pack ? "pack" : "unpack";
            row.error = failure_of([&] {
                const layout_ref what = layout_of(named.text);
                row.measured = measure(what, dir, on_gpu, named.misalign);
                if (on_gpu) {
                    const gpu::device *device = gpu::platform::instance().get_device(0);
                    row.predicted =
                        model::predict(profile.gpus.at(0), device->properties().num_sms, *what, dir,
                                       model::packed_side::gpu, named.misalign)
                            .each;
                } else {
                    row.predicted =
                        model::predict_host(profile.host_moves, *what, dir, named.misalign).each;
                }
            });
            print(row);
            rows.push_back(std::move(row));
        }
    }
    return rows;
}

std::string share_of(const std::vector<checked_row> &rows) {
    return fmt::format("{} of {} ({:.0f}%) within 25%", count_near(rows), rows.size(),
                       percent_near(rows));
}

bool enough_near(const std::vector<checked_row> &rows, double percent) {
    return percent_near(rows) >= percent;
}

nlohmann::json to_json(const std::vector<checked_row> &rows) {
    nlohmann::json all = nlohmann::json::array();
    for (const checked_row &row : rows) {
        all.push_back({{"layout", row.layout},
                       {"text", row.text},
                       {"direction", row.direction},
                       {"misalign", row.misalign},
                       {"measured_us", row.measured},
                       {"predicted_us", row.predicted},
                       {"error", row.error}});
    }
    return all;
}

}  // namespace cuda_nc::tools
