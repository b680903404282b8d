// nc_perftest mpi: messages between the ranks of an MPI job, as any MPI program would send them.
// Uses MPI alone; whether this product serves it is a matter of the job's environment.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cuda_nc/cuda_nc.h"
#include "tools/perftest/layouts/catalogue.hpp"
#include "tools/perftest/message/halo.hpp"
#include "tools/perftest/message/memory.hpp"
#include "tools/perftest/message/options.hpp"
#include "tools/perftest/message/point_to_point.hpp"
#include "tools/perftest/mpi/mpi_exchange.hpp"
#include "tools/perftest/mpi/mpi_messenger.hpp"
#include "tools/perftest/message/pairs.hpp"
#include "tools/perftest/support/program.hpp"
#include "tools/perftest/support/progress.hpp"
#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/support/watchdog.hpp"

namespace {

using namespace cuda_nc::tools;

struct mpi_options {
    message_options all;
    std::vector<int> boxes{64, 128};
    int halo = 1;
    std::vector<std::string> ways{"isend"};
    bool contiguous_only = false;
};

std::string mpi_library() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    const std::string all(text, static_cast<size_t>(length));
    return all.substr(0, all.find_first_of(",\n"));
}

int local_rank() {
    MPI_Comm node;
    int rank = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_free(&node);
    return rank;
}

bool is_halo(const std::string &test) {
    return test == "halo6" || test == "halo26";
}

std::vector<halo_options> halos_of(const mpi_options &o) {
    std::vector<halo_options> all;
    for (int edge : o.boxes) {
        for (const std::string &way : o.ways) {
            all.push_back({edge, o.halo, way, o.contiguous_only});
        }
    }
    return all;
}

void check_halo_options(const mpi_options &o) {
    const std::vector<std::string> &tests = o.all.tests;
    if (o.ways != mpi_options().ways && std::none_of(tests.begin(), tests.end(), is_halo)) {
        throw run_error("--by says how halos are exchanged: add halo6 or halo26 to -t");
    }
    if (o.contiguous_only && (o.all.bidir || !std::all_of(tests.begin(), tests.end(), is_halo))) {
        throw run_error(
            "--contiguous-only is for halos alone: take -t halo6,halo26 and no --bidir");
    }
}

// Rank 0's plan, on all ranks.
message_plan share_plan(messenger &by, const mpi_options &o) {
    std::string text;
    if (by.rank() == 0) {
        try {
            const auto ranks = static_cast<size_t>(by.size());
            if (o.all.memory.size() > ranks || o.all.gpus.size() > ranks) {
                throw run_error(
                    fmt::format("-m and --gpus take at most one value a rank: {}", ranks));
            }
            check_halo_options(o);
            message_plan plan = make_plan(o.all);
            choose_memory(&plan);
            text = to_json(plan);
        } catch (const run_error &failure) {
            text = fmt::format("!{}", failure.what());
        }
    }
    text = by.gather(text).front();
    if (text[0] == '!') {
        throw run_error(text.substr(1));
    }
    return plan_from_json(text);
}

// Ranks of a machine take turns over its GPUs, or over those of --gpus.
void choose_gpus(messenger &by, message_plan *plan) {
    const int here = local_rank();  // all ranks ask
    int mine = 0;
    if (of_rank(plan->memory, by.rank()) != "host") {
        mine = plan->gpus.empty() ? here % std::max(gpu_count(), 1) : of_rank(plan->gpus, here);
    }
    plan->gpus.clear();
    for (const std::string &one : by.gather(std::to_string(mine))) {
        plan->gpus.push_back(std::stoi(one));
    }
}

size_t count_measurements(const message_plan &plan, const mpi_options &o) {
    size_t count = 0;
    for (const std::string &test : plan.tests) {
        count += is_halo(test) ? halos_of(o).size() : plan.cases.size();
    }
    return count;
}

void run_tests(messenger &by, const message_plan &plan, const mpi_options &o,
               const begin_handler &on_begin, const row_handler &on_row) {
    auto begin = [&](const std::string &layout) {
        if (by.rank() == 0) {
            on_begin(layout);
        }
    };
    run_point_to_point_tests(by, plan, on_begin, on_row);
    for (const std::string &test : plan.tests) {
        if (test == "pairs" || test == "pairs-bidir") {
            for (const layout_case &what : plan.cases) {
                begin(what.name);
                for (const message_row &row : run_pairs(by, plan, what, test)) {
                    on_row(row);
                }
            }
        } else if (is_halo(test)) {
            for (const halo_options &halo : halos_of(o)) {
                begin(test + " " + name_of(halo));
                on_row(run_halo(by, plan, test, halo));
            }
        }
    }
}

// Of the column of layouts: as of the other modes, or wider where a way has a long name.
size_t layout_width(const message_plan &plan, const mpi_options &o) {
    size_t width = 16;
    if (std::any_of(plan.tests.begin(), plan.tests.end(), is_halo)) {
        for (const halo_options &halo : halos_of(o)) {
            width = std::max(width, name_of(halo).size());
        }
    }
    return width;
}

int run(const mpi_options &o) {
    mpi_messenger messages;
    message_plan plan;
    try {
        plan = share_plan(messages, o);
    } catch (const run_error &failure) {
        if (messages.rank() == 0) {
            fmt::print(stderr, "nc_perftest: {}\n", failure.what());
        }
        return 1;
    }
    choose_gpus(messages, &plan);
    const size_t width = layout_width(plan, o);
    nlohmann::json rows = nlohmann::json::array();
    bool good = true;
    if (messages.rank() == 0) {
        fmt::print("# nc_perftest {} mpi, {}, {} ranks, {}; ratio: to contiguous memory, in time\n",
                   cuda_nc_version(), mpi_library(), messages.size(), now());
        print_message_heading("", "", width);
    }
    progress_counter progress(count_measurements(plan, o));
    auto on_begin = [&](const std::string &layout) { progress.begin(layout); };
    run_tests(messages, plan, o, on_begin, [&](const message_row &row) {
        if (messages.rank() == 0) {
            progress.clear();
            print_message_row(row, width);
            good = good && row.error.empty();
            rows.push_back(to_json(row));
            rows.back()["ranks"] = messages.size();
        }
    });
    good = good && (messages.rank() != 0 || !rows.empty());
    watch_for(plan.timeout + 60, "the end of the job");
    if (messages.rank() == 0) {
        message_heading about;
        about.version = cuda_nc_version();
        about.mode = "mpi";
        about.command = o.all.command;
        about.date = now();
        about.software = mpi_library();
        for (int rank = 0; rank < messages.size(); ++rank) {
            about.memory += (rank == 0 ? "" : ",") + of_rank(plan.memory, rank);
        }
        about.device = describe_memory(of_rank(plan.memory, 0), plan.gpus.front());
        about.environment = message_environment();
        save_results(o.all, about, rows);
    }
    return messages.gather(good ? "" : "bad").front().empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) {
    mpi_options o;
    o.all.gpus.clear();
    o.all.command = "nc_perftest mpi";
    for (int i = 1; i < argc; ++i) {
        o.all.command += std::string(" ") + argv[i];
    }
    MPI_Init(&argc, &argv);
    int rank = 0, status = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CLI::App app("Messages between the ranks of an MPI job: mpirun -np 2 nc_perftest mpi ...",
                 "nc_perftest mpi");
    app.add_option("--gpus", o.all.gpus,
                   "GPUs that the ranks of a machine take in turn (default: all)")
        ->delimiter(',');
    app.add_option("--box", o.boxes, "Edges of the boxes of halo6 and halo26, in elements of 8 B")
        ->delimiter(',')
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    app.add_option("--halo", o.halo, "Their halo's width, in elements")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    app.add_option("--by", o.ways,
                   fmt::format("How halos are exchanged, with commas, a row each: {}",
                               CLI::detail::join(exchange_ways(), ", ")))
        ->delimiter(',')
        ->check(CLI::IsMember(exchange_ways()))
        ->capture_default_str();
    app.add_flag("--contiguous-only", o.contiguous_only,
                 "Halos: exchange contiguous buffers alone, and make no datatype");
    add_message_options(
        &app, &o.all, {"latency", "bandwidth", "bidir", "pairs", "pairs-bidir", "halo6", "halo26"});
    try {
        app.parse(argc, argv);
        status = o.all.list ? (rank == 0 ? list_layouts() : 0) : run(o);
    } catch (const CLI::ParseError &wrong) {
        status = rank == 0 ? app.exit(wrong) : wrong.get_exit_code();
    } catch (const std::exception &failure) {
        fmt::print(stderr, "nc_perftest: rank {}: {}\n", rank, failure.what());
        std::fflush(nullptr);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return finish_output("nc_perftest", status);
}
