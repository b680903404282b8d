#include "tools/explain.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "tools/perftest/layouts/catalogue.hpp"
#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/layouts/sizes.hpp"
#include "tools/perftest/tune/rules.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/exec/host/host_executor.hpp"
#include "ucs/model/choices.hpp"
#include "ucs/model/predict.hpp"

namespace cuda_nc::tools {
namespace {

using gpu::direction;
using model::packed_side;

constexpr direction both[] = {direction::pack, direction::unpack};

const char *name_of(direction dir) {
    return dir == direction::pack ? "pack" : "unpack";
}

struct subject {
    layout_ref what;
    size_t misalign = 0;
};

// A family as large as `bytes` says; any other layout as often as fits, like a count of MPI's.
subject find(const std::string &name, uint64_t bytes) {
    const std::optional<named_layout> named = find_layout(name);
    if (!named) {
        throw run_error(
            fmt::format("'{}' is neither a known layout nor a text form such as "
                        "vector:1024,8,16",
                        name));
    }
    if (is_family(named->text)) {
        if (bytes == 0) {
            throw run_error(fmt::format("{} is a layout of any size: give a size", named->text));
        }
        const std::optional<fitted_layout> member = fit_layout(named->text, bytes);
        if (!member) {
            throw run_error(fmt::format("no {} has {} bytes or less", named->text, bytes));
        }
        return {layout_of(member->text), named->misalign};
    }
    layout_ref what = layout_of(named->text);
    const uint64_t count = bytes / std::max<uint64_t>(1, what->packed_size());
    if (count > 1) {
        what = what->repeat(count, what->upper_bound() - what->lower_bound());
    }
    if (what == nullptr) {
        throw run_error("the layout exceeds 2^63 - 1 bytes");
    }
    if (bytes != 0 && bytes != what->packed_size()) {
        fmt::print("{:<12} {} B, not {}: {}\n", "size", what->packed_size(), bytes,
                   count > 1 ? fmt::format("{} of these layouts", count)
                             : "the layout has a size of its own");
    }
    return {what, named->misalign};
}

std::string size_text(uint64_t bytes) {
    if (bytes == model::never) {
        return "never";
    }
    return bytes >= 1 << 20 ? fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20))
                            : fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
}

void explain_kernels(const subject &s, const model::gpu_profile &of, unsigned num_sms) {
    for (direction dir : both) {
        const model::planned_kernel c =
            model::plan_kernel(of, num_sms, *s.what, dir, s.misalign, config().max_sms);
        const model::prediction p =
            model::predict(of, num_sms, *s.what, dir, packed_side::gpu, s.misalign);
        fmt::print("  {:<10} {}; grid {} x {} threads\n", name_of(dir), c.text, c.grid, c.threads);
        fmt::print("  {:<10} {:.1f} us to completion, {:.1f} us each of many ({:.0f} GB/s; {})\n",
                   "", p.single, p.each, static_cast<double>(s.what->packed_size()) / p.each / 1e3,
                   model::name_of(p.what));
    }
}

void explain_host_side(const subject &s, int ordinal, const model::gpu_profile &of,
                       unsigned num_sms) {
    const std::string &setting = config().zero_copy;
    for (direction dir : both) {
        const bool staged =
            setting == "n" ||
            (setting != "y" &&
             model::prefers_staging(model::choices_of(ordinal), dir, s.what->view().align_log2,
                                    s.what->packed_size(), s.what->total_blocks()));
        auto us = [&](packed_side where) {
            return model::predict(of, num_sms, *s.what, dir, where, s.misalign).single;
        };
        fmt::print("  {:<10} host memory: {}{}; zero-copy {:.1f} us, staged {:.1f} us\n",
                   name_of(dir), staged ? "staged" : "zero-copy",
                   setting == "auto" ? "" : " (UCX_CUDA_NC_ZERO_COPY)", us(packed_side::pinned),
                   us(packed_side::staged));
    }
    fmt::print("  {:<10} {}{}\n", "fragments", size_text(model::fragment_size(ordinal)),
               config().fragment_size_is_set ? " (UCX_CUDA_NC_FRAGMENT_SIZE)" : "");
}

void explain_message_times(const subject &s, const model::gpu_profile &of,
                           const gpu::device_properties &properties) {
    const std::optional<double> measured = model::fastest_link(model::machine(), of.bus_id);
    const double link = measured.value_or(model::default_link(properties));
    fmt::print("  {:<10} GPU to GPU {:.1f} us ({} link), through host memory {:.1f} us\n", "",
               model::predict_direct(of, properties.num_sms, *s.what, link, s.misalign),
               measured ? "measured" : "usual",
               model::predict_through_host(of, model::machine().host_moves, s.what->packed_size()));
}

void explain_message(const subject &s, const model::gpu_profile &of,
                     const gpu::device_properties &properties) {
    const uint64_t bytes = s.what->packed_size();
    const size_t thresh = model::direct_thresh(true), least = model::direct_thresh(false);
    const bool reaches = gpu::platform::instance().num_devices() > 1 &&
                         gpu::platform::instance()
                             .get_device(properties.ordinal)
                             ->can_access_peer(properties.ordinal == 0 ? 1 : 0);
    const char *route =
        !config().direct ? "through host memory (UCX_CUDA_NC_DIRECT=n)"
        : bytes < least  ? "eager, through host memory"
        : !config().pipe ? "rendezvous; by slots (UCX_CUDA_NC_PIPE=n)"
        : !reaches       ? "rendezvous; by pull or slots on one GPU, by host slots "
                           "between two"
        : bytes <= config().pull_max
            ? "rendezvous; by pull or pipe between two GPUs, by pull or slots on one"
            : "rendezvous; by pipe between two GPUs, by slots on one";
    fmt::print("  {:<10} with the transport cuda_nc: {} (from {} on)\n", "message", route,
               size_text(least));
    if (config().direct && least <= bytes && bytes < thresh) {
        fmt::print("  {:<10} MPI_Send below {}: eager, through host memory\n", "",
                   size_text(thresh));
    }
    explain_message_times(s, of, properties);
}

}  // namespace

void explain(const std::vector<std::string> &arguments) {
    uint64_t bytes = 0;
    if (arguments.size() > 1) {
        size_t size;
        if (!parse_size(arguments[1], &size) || arguments[1] == "inf" || size == 0) {
            throw run_error(fmt::format("'{}' is not a size", arguments[1]));
        }
        bytes = size;
    }
    const subject s = find(arguments.at(0), bytes);
    if (s.what->packed_size() == 0) {
        throw run_error("the layout is empty");
    }
    fmt::print("{:<12} {}\n", "layout", s.what->describe());
    const model::machine_profile &machine = model::machine();
    fmt::print("{:<12} {}\n", "figures", model::why_machine());
    gpu::platform &platform = gpu::platform::instance();
    if (config().max_sms != 0 && platform.num_devices() > 0) {
        fmt::print(
            "{:<12} grids are those of UCX_CUDA_NC_MAX_SMS={}, all times those of a whole GPU\n",
            "limit", config().max_sms);
    }
    for (int ordinal = 0; ordinal < platform.num_devices(); ++ordinal) {
        gpu::device *device = platform.get_device(ordinal);
        if (device == nullptr || static_cast<size_t>(ordinal) >= machine.gpus.size()) {
            continue;
        }
        const model::gpu_profile &of = machine.gpus[static_cast<size_t>(ordinal)];
        const gpu::device_properties &properties = device->properties();
        fmt::print("{:<12} {}, {} figures\n", fmt::format("GPU {}", ordinal), properties.name,
                   of.measured ? "measured" : "usual");
        fmt::print("  {:<10} {}\n", "rules", text_of(of.rules));
        explain_kernels(s, of, properties.num_sms);
        explain_host_side(s, ordinal, of, properties.num_sms);
        explain_message(s, of, properties);
    }
    fmt::print("{:<12} {}, {} figures\n", "host", exec::host_simd_name(),
               machine.measured ? "measured" : "usual");
    for (direction dir : both) {
        fmt::print("  {:<10} {:.1f} us\n", name_of(dir),
                   model::predict_host(machine.host_moves, *s.what, dir, s.misalign).single);
    }
}

}  // namespace cuda_nc::tools
