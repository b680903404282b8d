#include "tools/perftest/pack/mode.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <map>
#include <memory>
#include <new>

#include "cuda_nc/cuda_nc.h"
#include "tools/perftest/layouts/catalogue.hpp"
#include "tools/perftest/layouts/catalogue.hpp"
#include "tools/perftest/support/timed_transfer.hpp"
#include "tools/perftest/support/oracle.hpp"
#include "tools/perftest/pack/layouts.hpp"
#include "tools/perftest/support/progress.hpp"
#include "tools/perftest/pack/report.hpp"
#include "tools/perftest/support/clock.hpp"
#include "ucs/exec/host/host_executor.hpp"
#include "ucs/exec/host/split.hpp"
#include "ucs/layout/layout_spec.hpp"
#include "ucs/model/choices.hpp"

namespace cuda_nc::tools {
namespace {

struct pack_options {
    layout_choice what;
    std::vector<std::string> directions{"pack", "unpack"};
    std::string memory = "auto", json, csv, command;
    unsigned iterations = 11, warm_up = 2, batch = 0, max_sms = 0;
    int device = 0;
    bool no_verify = false, list = false;
};

const std::map<std::string, gpu::direction> directions = {{"pack", gpu::direction::pack},
                                                          {"unpack", gpu::direction::unpack},
                                                          {"copy", gpu::direction::copy}};
const std::map<std::string, memory_choice> memories = {{"host", memory_choice::host},
                                                       {"gpu", memory_choice::device},
                                                       {"pinned", memory_choice::pinned}};

std::string device_name(memory_choice memory, int ordinal) {
    if (memory == memory_choice::host) {
        const unsigned threads = exec::max_host_threads();
        return threads == 1 ? fmt::format("host ({})", exec::host_simd_name())
                            : fmt::format("host ({}, {} threads)", exec::host_simd_name(), threads);
    }
    gpu::device *device = gpu::platform::instance().get_device(ordinal);
    return device != nullptr ? device->properties().name : "no GPU";
}

std::vector<named_layout> chosen_layouts(const layout_choice &from) {
    std::vector<std::string> notes;
    std::vector<named_layout> chosen = choose_layouts(from, &notes);
    for (const std::string &note : notes) {
        fmt::print("# {}\n", note);
    }
    return chosen;
}

void verify(const layout &what, gpu::direction dir, timed_transfer &moves, result_row *row) {
    const size_t laid_out = laid_out_size(what), packed = what.packed_size();
    std::vector<char> source = noise(dir == gpu::direction::unpack ? packed : laid_out, 1);
    std::vector<char> target = noise(dir == gpu::direction::pack ? packed : laid_out, 2);
    moves.fill(source, target);
    moves.run(1);
    std::string fault = compare(expected_target(what, dir, source, target), moves.read_target());
    row->verified = fault.empty();
    if (!fault.empty()) {
        row->error = "WRONG: " + fault;
    }
}

// What a new datatype costs the CPU before its first use: each block given once, in order.
double time_of_listing(const layout &what) {
    std::vector<block> blocks;
    layout_cursor cursor(what, 0);
    for (block one = cursor.next(UINT64_MAX); one.length != 0; one = cursor.next(UINT64_MAX)) {
        blocks.push_back(one);
    }
    const double begin = seconds_now();
    layout_builder builder;
    for (const block &one : blocks) {
        builder.append(one.displacement, one.length);
    }
    const layout_ref made = builder.finish();
    return seconds_now() - begin;
}

// Side by side: all see the same machine.
void sample(timed_transfer &moves, const pack_options &o, result_row *row) {
    row->touched = moves.prepare_sector_copy();
    for (unsigned i = 0; i < o.warm_up; ++i) {
        moves.run(1);
        moves.plain_copy(1);
        if (row->touched != 0) {
            moves.sector_copy(1);
        }
    }
    std::vector<double> times, copies, sector_copies;
    for (unsigned i = 0; i < o.iterations; ++i) {
        times.push_back(moves.run(o.batch));
        copies.push_back(moves.plain_copy(o.batch));
        if (row->touched != 0) {
            sector_copies.push_back(moves.sector_copy(o.batch));
        }
    }
    row->time = summarise(std::move(times));
    row->plain_copy = summarise(std::move(copies));
    row->sector_copy = summarise(std::move(sector_copies));
}

result_row measure(const named_layout &named, const std::string &direction, memory_choice memory,
                   const pack_options &o) {
    result_row row;
    row.layout = named.name;
    row.text = named.text;
    row.direction = direction;
    row.misalign = named.misalign;
    row.max_sms = o.max_sms;
    transfer_request request;
    request.what = layout_of(named.text);
    request.dir = directions.at(direction);
    request.memory = memory;
    request.misalign = named.misalign;
    request.device = o.device;
    request.max_sms = o.max_sms;
    row.bytes = request.what->packed_size();
    row.blocks = request.what->total_blocks();
    if (row.bytes == 0) {
        row.error = "the layout is empty";
        return row;
    }
    if (memory == memory_choice::device && request.dir != gpu::direction::copy) {
        row.bar = request.dir == gpu::direction::pack ? named.at_most.pack : named.at_most.unpack;
    }
    try {
        std::unique_ptr<timed_transfer> moves = make_timed_transfer(request);
        if (request.what->kind() == shape::irregular && request.what->view().num_dims == 0) {
            row.listing = time_of_listing(*request.what);
        }
        row.first_use = moves->first_use();
        row.table_bytes = moves->table_bytes();
        if (!o.no_verify) {
            verify(*request.what, request.dir, *moves, &row);
        }
        sample(*moves, o, &row);
    } catch (const run_error &failure) {
        row.error = failure.what();
    } catch (const std::bad_alloc &) {
        row.error = "not enough host memory to verify";
    }
    return row;
}

int run_pack(pack_options o) {
    if (o.list) {
        return list_layouts();
    }
    check_writable(o.json);
    check_writable(o.csv);
    const std::vector<named_layout> layouts = chosen_layouts(o.what);
    if (o.memory == "auto") {
        o.memory = gpu::platform::instance().num_devices() != 0 ? "gpu" : "host";
    }
    const memory_choice memory = memories.at(o.memory);
    if (memory != memory_choice::host &&
        gpu::platform::instance().get_device(o.device) == nullptr) {
        throw run_error(fmt::format("there is no GPU {} (backend {}: {}); --memory host needs none",
                                    o.device, gpu::platform::instance().name(),
                                    gpu::platform::instance().why()));
    }
    model::machine();  // before the first launch
    if (memory == memory_choice::host) {
        o.max_sms = 0;
    }
    if (o.batch == 0) {
        o.batch = memory == memory_choice::host ? 1 : 20;
    }
    result_file all;
    all.version = cuda_nc_version();
    all.mode = "pack";
    all.command = o.command;
    all.date = now();
    all.device = device_name(memory, o.device);
    all.memory = o.memory;
    all.iterations = o.iterations;
    all.batch = o.batch;
    all.warm_up = o.warm_up;
    all.max_sms = o.max_sms;
    print_heading(all);
    bool good = true;
    progress_counter progress(layouts.size() * o.directions.size());
    for (const named_layout &one : layouts) {
        for (const std::string &direction : o.directions) {
            progress.begin(one.name);
            all.rows.push_back(measure(one, direction, memory, o));
            good = good && all.rows.back().error.empty();
            progress.clear();
            print_row(all.rows.back());
        }
    }
    if (!o.json.empty()) {
        save(o.json, to_json(all));
    }
    if (!o.csv.empty()) {
        save(o.csv, to_csv(all));
    }
    return good ? 0 : 1;
}

}  // namespace

std::function<int()> add_pack_options(CLI::App *mode, const std::string &command) {
    auto o = std::make_shared<pack_options>();
    o->command = command;
    mode->add_option(
        "-l,--layout", o->what.layouts,
        "A layout by name (see --list) or text, e.g. vector:1024,8,16 (forms: below); * stands for "
        "a count that makes it as large as --sizes says: vector:*,8,16; repeatable");
    mode->add_option("-s,--set", o->what.set,
                     "A set of layouts: standard, applications, small, messages (with --sizes)");
    mode->add_option(
        "--sizes", o->what.sizes,
        "Packed bytes of layouts of any size: 64K, 8,1M, 8:64M (by factors of 2), 8:64M:4 (of 4)");
    mode->add_option("-d,--direction", o->directions, "pack, unpack, copy; several with commas")
        ->delimiter(',')
        ->check(CLI::IsMember({"pack", "unpack", "copy"}))
        ->capture_default_str();
    mode->add_option("-m,--memory", o->memory,
                     "Where: host, gpu, pinned (packed side in pinned host memory), or auto")
        ->check(CLI::IsMember({"auto", "host", "gpu", "pinned"}))
        ->capture_default_str();
    mode->add_option("-n,--iterations", o->iterations, "Samples of each row")
        ->check(CLI::Range(1u, 1000000u))
        ->capture_default_str();
    mode->add_option("-w,--warmup", o->warm_up, "Calls before the first sample")
        ->check(CLI::Range(0u, 1000000u))
        ->capture_default_str();
    mode->add_option("-b,--batch", o->batch,
                     "Calls in a sample, back to back; 1 is the latency of one (default: 20 on a "
                     "GPU, 1 on the host)")
        ->check(CLI::Range(1u, 1000000u));
    mode->add_option("--misalign", o->what.misalign,
                     "Bytes by which the laid-out buffer is misaligned")
        ->check(CLI::Range(0, 255));
    mode->add_option("--device", o->device, "Ordinal of the GPU")->capture_default_str();
    mode->add_option("--max-sms", o->max_sms, "Most multiprocessors to use; 0: all")
        ->capture_default_str();
    mode->add_flag("--no-verify", o->no_verify, "Do not check the bytes");
    mode->add_flag("--list", o->list, "Print the names of all layouts");
    mode->add_option("--json", o->json, "Write the results to this file as JSON");
    mode->add_option("--csv", o->csv, "Write the results to this file as CSV");
    mode->footer(layout_forms());
    return [o] { return run_pack(*o); };
}

}  // namespace cuda_nc::tools
