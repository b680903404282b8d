// Does anybody still need to pack by hand? A stencil of 7 points on doubles, as an application
// writer would write it: the interior is computed while two faces go to the neighbours and two come
// from them, by MPI datatypes, by kernels that pack and unpack, or (as a measure) without packing.
//
//   mpirun -np N stencil [--box 64,128,256,512] [--dimension x|y|z|all] [--way NAME,...|all]
//                        [--steps N] [--memory cuda|host|sim] [--json FILE] [--label TEXT]
//                        [--first kernel|exchange] [--seconds N] [--no-verify]
//
// Exit status 1: wrong elements. docs/manual/measuring.md says what the columns mean.
#include <mpi.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "bench/stencil_exchange.hpp"
#include "bench/stencil_run.hpp"

namespace {

using cuda_nc::tools::summary;

// "all" stands for each of them; otherwise those that were asked for, in the usual order.
std::vector<std::string> chosen_of(const std::vector<std::string> &all,
                                   const std::vector<std::string> &asked) {
    std::vector<std::string> chosen;
    for (const std::string &name : all) {
        if (std::count(asked.begin(), asked.end(), name) > 0 ||
            std::count(asked.begin(), asked.end(), "all") > 0) {
            chosen.push_back(name);
        }
    }
    return chosen;
}

std::vector<std::string> with_all(std::vector<std::string> names) {
    names.emplace_back("all");
    return names;
}

std::string number(double value, int width, int digits) {
    char text[64];
    if (value > 0) {
        std::snprintf(text, sizeof(text), " %*.*f", width, digits, value);
    } else {
        std::snprintf(text, sizeof(text), " %*s", width, "-");
    }
    return text;
}

double ratio(const summary &one, const summary *other) {
    return other != nullptr && other->median > 0 ? one.median / other->median : 0;
}

const stencil_row *row_of(const stencil_result &result, const char *way) {
    for (const stencil_row &row : result.rows) {
        if (row.way == way) {
            return &row;
        }
    }
    return nullptr;
}

void print_heading(const stencil_options &options, int ranks) {
    std::printf(
        "# stencil %s, %d ranks, memory %s, %s first; microseconds of the slowest rank, medians\n"
        "# /hand, /contig: exchanges and steps in times of those by hand and contiguous; alone, "
        "beside: "
        "the interior's\n# kernel, without an exchange and within the steps\n",
        options.label.c_str(), ranks, options.memory.c_str(), options.first.c_str());
    if (!options.has_steps()) {
        std::printf(
            "# simulated GPU: columns of steps and kernels are missing, for the CPU cannot compute "
            "there; so are the\n# ways hand and contiguous, for no MPI sends contiguous memory "
            "from "
            "there. Steps are checked through copies.\n");
    } else if (options.memory == "host") {
        std::printf("# host memory: kernels are loops of the CPU, and nothing runs beside them\n");
    }
    std::printf("%4s %-3s %-16s %9s %4s %9s %9s %6s %7s %9s %9s %6s %7s %9s %9s %9s %9s %6s\n",
                "box", "dim", "way", "face B", "n", "exchange", "p95", "/hand", "/contig", "step",
                "p95", "/hand", "/contig", "alone", "p95", "beside", "p95", "/alone");
}

void print_rows(const stencil_grid &grid, const stencil_result &result) {
    const stencil_row *hand = row_of(result, "hand"), *plain = row_of(result, "contiguous");
    for (const stencil_row &row : result.rows) {
        std::string line;
        for (const summary stencil_row::*part : {&stencil_row::exchange, &stencil_row::step}) {
            const summary &of = row.*part;
            line += number(of.median, 9, 1) + number(of.p95, 9, 1) +
                    number(ratio(of, hand != nullptr ? &(hand->*part) : nullptr), 6, 2) +
                    number(ratio(of, plain != nullptr ? &(plain->*part) : nullptr), 7, 2);
        }
        line += number(result.kernel_alone.median, 9, 1) + number(result.kernel_alone.p95, 9, 1) +
                number(row.kernel.median, 9, 1) + number(row.kernel.p95, 9, 1) +
                number(ratio(row.kernel, &result.kernel_alone), 6, 2);
        std::printf("%4d %-3c %-16s %9zu %4zu%s\n", grid.box, "xyz"[grid.dimension],
                    row.way.c_str(), grid.face_elements() * sizeof(double), row.exchange.samples,
                    line.c_str());
    }
    std::fflush(stdout);
}

std::string quoted(const std::string &text) {
    std::string made = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') {
            made += '\\';
        }
        made += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    return made + "\"";
}

std::string member(const char *name, const summary &of) {
    if (of.samples == 0) {
        return "";
    }
    char text[200];
    std::snprintf(text, sizeof(text),
                  ", \"%s_us\": %.3f, \"%s_p95_us\": %.3f, \"%s_least_us\": %.3f", name, of.median,
                  name, of.p95, name, of.least);
    return text;
}

void append_json(const stencil_options &options, const stencil_grid &grid,
                 const stencil_result &result) {
    std::ofstream file(options.json, std::ios::app);
    for (const stencil_row &row : result.rows) {
        file << "{\"label\": " << quoted(options.label) << ", \"ranks\": " << grid.ranks
             << ", \"memory\": " << quoted(options.memory)
             << ", \"processor\": " << quoted(result.processor)
             << ", \"first\": " << quoted(options.first) << ", \"box\": " << grid.box
             << ", \"dimension\": \""
             << "xyz"[grid.dimension] << "\", \"way\": " << quoted(row.way)
             << ", \"face_bytes\": " << grid.face_elements() * sizeof(double)
             << ", \"samples\": " << row.exchange.samples << member("exchange", row.exchange)
             << member("step", row.step) << member("kernel_alone", result.kernel_alone)
             << member("kernel_beside", row.kernel)
             << ", \"verified\": " << (options.verify ? "true" : "false")
             << ", \"wrong_elements\": " << result.wrong << "}\n";
    }
    if (!file.flush()) {
        std::fprintf(stderr, "%s cannot be written\n", options.json.c_str());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

// Wrong elements of one box and dimension.
long measure(const stencil_options &options, const stencil_grid &grid, MPI_Comm line) {
    const stencil_result result = run_stencil(options, grid, line);
    if (grid.rank == 0) {
        print_rows(grid, result);
        if (!options.verify) {
            std::printf("# %s: not verified\n", result.processor.c_str());
        } else {
            std::printf(
                "# %s: %ld wrong elements; compared: all after %d steps of each way, %s after the "
                "%d "
                "that were timed\n",
                result.processor.c_str(), result.wrong, stencil_checked_steps,
                result.recomputed ? "all" : "halos", result.steps_taken);
        }
        std::fflush(stdout);
        if (!options.json.empty()) {
            append_json(options, grid, result);
        }
    }
    return result.wrong;
}

long measure_all(const stencil_options &options) {
    stencil_grid grid = {};
    MPI_Comm_size(MPI_COMM_WORLD, &grid.ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &grid.rank);
    const int periodic = 1;
    MPI_Comm line;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &grid.ranks, &periodic, 0, &line);
    if (grid.rank == 0) {
        print_heading(options, grid.ranks);
    }
    long wrong = 0;
    for (int box : options.boxes) {
        for (const std::string &dimension : options.dimensions) {
            grid.box = box;
            grid.dimension = dimension[0] - 'x';
            wrong += measure(options, grid, line);
        }
    }
    MPI_Comm_free(&line);
    return wrong;
}

}  // namespace

int main(int argc, char **argv) {
    stencil_options options;
    const std::vector<std::string> dimensions = {"x", "y", "z"};
    CLI::App app("Halo exchange of a stencil by MPI datatypes and by hand: mpirun -np N stencil",
                 "stencil");
    app.add_option("--box", options.boxes, "Elements of an edge of each rank's box")
        ->delimiter(',')
        ->check(CLI::Range(2, 2048))
        ->capture_default_str();
    app.add_option("--dimension", options.dimensions,
                   "Along which the ranks stand; x varies slowest")
        ->delimiter(',')
        ->check(CLI::IsMember(with_all(dimensions)))
        ->capture_default_str();
    app.add_option("--way", options.ways, "How faces are exchanged")
        ->delimiter(',')
        ->check(CLI::IsMember(with_all(stencil_exchange::names())))
        ->capture_default_str();
    app.add_option("--steps", options.steps, "Samples of each way")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--in-a-row", options.in_a_row,
                   "Samples of a way before the next way's, as a program goes one way")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--seconds", options.seconds,
                   "Most time for a way at one box and dimension; at least three samples are taken")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--memory", options.memory, "Where fields lie")
        ->check(CLI::IsMember({"cuda", "host", "sim"}))
        ->capture_default_str();
    app.add_option("--first", options.first, "What a step starts first")
        ->check(CLI::IsMember({"kernel", "exchange"}))
        ->capture_default_str();
    app.add_option("--json", options.json, "Append a line for each row to this file");
    app.add_option("--label", options.label, "Text for the heading and the file")
        ->capture_default_str();
    app.add_flag("!--no-verify", options.verify, "Compare no element");
    app.add_option("--inject", options.inject,
                   "Flip a bit on rank 0, for tests: halo, gap (after an exchange), step (after a "
                   "step)")
        ->check(CLI::IsMember({"halo", "gap", "step"}));
    CLI11_PARSE(app, argc, argv);
#ifdef STENCIL_WITHOUT_CUDA
    if (options.memory == "cuda") {
        std::fprintf(stderr, "stencil was built without CUDA\n");
        return 2;
    }
#endif
    options.dimensions = chosen_of(dimensions, options.dimensions);
    options.ways = chosen_of(stencil_exchange::names(), options.ways);
    if (options.memory == "sim") {
        options.ways.erase(std::remove_if(options.ways.begin(), options.ways.end(),
                                          stencil_exchange::is_contiguous),
                           options.ways.end());
    }
    MPI_Init(&argc, &argv);
    const bool wrong = measure_all(options) != 0;
    MPI_Finalize();
    return wrong;
}
