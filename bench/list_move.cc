// Pair lists on real GPUs, by the product's kernel, beside a plain contiguous copy of as many
// bytes: blocks of one length at twice their length, in one or between two GPUs of this process.
// Every byte and every gap is checked.
//
//     make -f bench/list_move.mk UCX=DIR OUTPUT=list_move
//     ./list_move [--source 0 --target 1] [--run-on target] [PAIRSxBYTES ...]
//
// Prints microseconds, medians by events of the stream: a launch alone takes about 2. "ends": until
// the CPU has seen the launch's words, from the call on. Exit status 1: a wrong byte.
#include <cuda_runtime_api.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tools/perftest/support/statistics.hpp"
#include "ucs/exec/kernels/instances/kernels.cuh"
#include "ucs/exec/kernels/plan/pair_plan.hpp"
#include "ucs/gpu/device.hpp"

namespace {

using namespace cuda_nc;

struct options {
    int source = 0, target = 0;  // GPUs
    std::string run_on = "target", order = "both", list = "pinned";
    unsigned max_sms = 0, repeats = 21;
    size_t cut = gpu::block_pair::best_length, skew_from = 0, skew_to = 0;
    std::vector<std::string> cases;
};

struct block_set {
    size_t blocks, bytes;
};

void need(cudaError_t result, const char *what) {
    if (result != cudaSuccess) {
        std::fprintf(stderr, "list_move: %s: %s\n", what, cudaGetErrorString(result));
        std::exit(2);
    }
}

char pattern(size_t i) {
    return static_cast<char>((i * 2654435761u >> 11) ^ (i >> 20));
}

class mover {
  public:
    explicit mover(const options &how)
        : how_(how), own_(how.run_on == "source" ? how.source : how.target) {
        const int other = how.run_on == "source" ? how.target : how.source;
        need(cudaSetDevice(own_), "a GPU");
        if (own_ != other) {
            need(cudaDeviceEnablePeerAccess(other, 0), "access to the other GPU");
        }
        cudaDeviceProp properties;
        need(cudaGetDeviceProperties(&properties, own_), "a GPU");
        num_sms_ = static_cast<unsigned>(properties.multiProcessorCount);
        std::printf(
            "# %s; source GPU %d, target GPU %d, kernel on GPU %d; list in %s memory; "
            "skew %zu, %zu\n",
            properties.name, how.source, how.target, own_, how.list.c_str(), how.skew_from,
            how.skew_to);
        need(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
        need(cudaEventCreate(&begin_), "an event");
        need(cudaEventCreate(&end_), "an event");
        void *words;
        need(cudaMallocHost(&words, gpu::end_words::bytes), "pinned memory");
        ends_.use(words);
    }

    // False: a wrong byte.
    bool run(const block_set &what, bool random) {
        const size_t span = 2 * what.blocks * what.bytes + 64;
        char *source, *target;
        need(cudaSetDevice(how_.source), "a GPU");
        need(cudaMalloc(reinterpret_cast<void **>(&source), span), "GPU memory");
        image_.resize(span);
        for (size_t i = 0; i < span; ++i) {
            image_[i] = pattern(i);
        }
        need(cudaMemcpy(source, image_.data(), span, cudaMemcpyHostToDevice), "a copy");
        need(cudaSetDevice(how_.target), "a GPU");
        need(cudaMalloc(reinterpret_cast<void **>(&target), span), "GPU memory");
        need(cudaMemset(target, gap, span), "a fill");
        need(cudaDeviceSynchronize(), "a fill");
        need(cudaSetDevice(own_), "a GPU");

        std::vector<size_t> from(what.blocks), to(what.blocks);  // which block goes where
        std::iota(from.begin(), from.end(), size_t{0});
        to = from;
        if (random) {
            std::mt19937_64 engine(1);
            std::shuffle(from.begin(), from.end(), engine);
            std::shuffle(to.begin(), to.end(), engine);
        }
        upload(make_list(what, from, to, source, target));

        std::vector<double> moves, copies, calls;
        for (unsigned i = 0; i < how_.repeats; ++i) {
            moves.push_back(timed([&] { launch(false); }));
            calls.push_back(seen());
        }
        const bool right = check(what, from, to, target);
        const size_t bytes = what.blocks * what.bytes;
        for (unsigned i = 0; i < how_.repeats; ++i) {
            copies.push_back(timed([&] {
                need(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream_), "a copy");
            }));
        }
        print(what, random, tools::median_of(moves), tools::median_of(calls),
              tools::median_of(copies), right);
        need(cudaFree(source), "freeing");
        need(cudaFree(target), "freeing");
        need(how_.list == "pinned" ? cudaFreeHost(pairs_) : cudaFree(pairs_), "freeing");
        return right;
    }

  private:
    static constexpr unsigned char gap = 0xa5;

    std::vector<gpu::block_pair> make_list(const block_set &what, const std::vector<size_t> &from,
                                           const std::vector<size_t> &to, const char *source,
                                           char *target) const {
        std::vector<gpu::block_pair> list;
        for (size_t i = 0; i < what.blocks; ++i) {
            for (size_t done = 0; done < what.bytes; done += how_.cut) {
                list.push_back({source + 2 * what.bytes * from[i] + how_.skew_from + done,
                                target + 2 * what.bytes * to[i] + how_.skew_to + done,
                                std::min(how_.cut, what.bytes - done)});
            }
        }
        return list;
    }

    void upload(const std::vector<gpu::block_pair> &list) {
        count_ = list.size();
        const size_t bytes = count_ * sizeof(list[0]);
        void *memory;
        need(how_.list == "pinned" ? cudaMallocHost(&memory, bytes) : cudaMalloc(&memory, bytes),
             "memory for the list");
        need(cudaMemcpy(memory, list.data(), bytes, cudaMemcpyDefault), "the list's copy");
        pairs_ = static_cast<gpu::block_pair *>(memory);
    }

    void launch(bool tells) {
        const exec::pair_plan plan = exec::plan_pairs(count_, num_sms_, how_.max_sms, tells);
        exec::pair_work work = {pairs_, count_, plan.run, plan.parts_log2};
        exec::end_mark end = {nullptr, 0};
        ends_.renew();
        if (plan.tells) {
            end = {ends_.words, ends_.value};
            ends_.count = plan.grid;
        }
        void *arguments[] = {&work, &end};
        need(cudaLaunchKernel(exec::pairs_kernel(plan.parts_log2 != 0), dim3(plan.grid),
                              dim3(plan.threads), arguments,
                              plan.threads / exec::warp_lanes * sizeof(exec::pair_table), stream_),
             "a launch");
    }

    template <class Work>
    double timed(Work &&work) {
        need(cudaEventRecord(begin_, stream_), "an event");
        work();
        need(cudaEventRecord(end_, stream_), "an event");
        need(cudaEventSynchronize(end_), "the GPU's work");
        float milliseconds;
        need(cudaEventElapsedTime(&milliseconds, begin_, end_), "an event");
        return double{milliseconds} * 1e3;
    }
    // From the call of a launch until the CPU knows of its end.
    double seen() {
        const auto begin = std::chrono::steady_clock::now();
        launch(true);
        if (!ends_.await()) {
            need(cudaStreamSynchronize(stream_), "the GPU's work");
        }
        const auto end = std::chrono::steady_clock::now();
        need(cudaStreamSynchronize(stream_), "the GPU's work");
        return std::chrono::duration<double, std::micro>(end - begin).count();
    }

    bool check(const block_set &what, const std::vector<size_t> &from,
               const std::vector<size_t> &to, const char *target) {
        std::vector<char> found(image_.size());
        std::vector<char> wanted(image_.size(), static_cast<char>(gap));
        need(cudaMemcpy(found.data(), target, found.size(), cudaMemcpyDeviceToHost), "a copy");
        for (size_t i = 0; i < what.blocks; ++i) {
            for (size_t k = 0; k < what.bytes; ++k) {
                wanted[2 * what.bytes * to[i] + how_.skew_to + k] =
                    pattern(2 * what.bytes * from[i] + how_.skew_from + k);
            }
        }
        for (size_t i = 0; i < found.size(); ++i) {
            if (found[i] != wanted[i]) {
                std::printf("WRONG byte %zu of %zu\n", i, found.size());
                return false;
            }
        }
        return true;
    }

    static void print(const block_set &what, bool random, double us, double seen, double copy,
                      bool right) {
        const double bytes = static_cast<double>(what.blocks) * static_cast<double>(what.bytes);
        std::printf("%9zu x %-9zu %-9s %10.1f %10.1f %9.1f %10.1f %9.1f %6.2f  %s\n", what.blocks,
                    what.bytes, random ? "random" : "ascending", us, seen, bytes / us / 1e3, copy,
                    bytes / copy / 1e3, us / copy, right ? "right" : "WRONG");
        std::fflush(stdout);
    }

    const options &how_;
    const int own_;
    unsigned num_sms_ = 0;
    cudaStream_t stream_ = nullptr;
    cudaEvent_t begin_ = nullptr, end_ = nullptr;
    gpu::end_words ends_;
    gpu::block_pair *pairs_ = nullptr;
    size_t count_ = 0;
    std::vector<char> image_;
};

}  // namespace

int main(int argc, char **argv) {
    options how;
    CLI::App app("Pair lists beside contiguous copies", "list_move");
    app.add_option("--source", how.source, "GPU that holds the source");
    app.add_option("--target", how.target, "GPU that holds the target");
    app.add_option("--run-on", how.run_on, "Whose kernel: target (reads) or source (writes)")
        ->check(CLI::IsMember({"source", "target"}));
    app.add_option("--order", how.order, "Of blocks, on both sides")
        ->check(CLI::IsMember({"ascending", "random", "both"}));
    app.add_option("--list", how.list, "Where the list lies")
        ->check(CLI::IsMember({"pinned", "device"}));
    app.add_option("--cut", how.cut, "Longest pair, in bytes; longer blocks have several")
        ->check(CLI::PositiveNumber);
    app.add_option("--skew-from", how.skew_from, "Bytes before the first block of the source")
        ->check(CLI::Range(0, 63));
    app.add_option("--skew-to", how.skew_to, "Bytes before the first block of the target")
        ->check(CLI::Range(0, 63));
    app.add_option("--max-sms", how.max_sms, "Multiprocessors; 0: all");
    app.add_option("--repeats", how.repeats, "Of each measurement")->check(CLI::PositiveNumber);
    app.add_option("cases", how.cases, "BLOCKSxBYTES ...");
    CLI11_PARSE(app, argc, argv);
    if (how.cases.empty()) {
        how.cases = {"65536x4096", "16384x16384", "12288x8192", "4096x65536", "1024x4096",
                     "64x65536",   "1x67108864",  "1048576x64", "1048576x8",  "65536x512",
                     "65536x1024", "65536x2048",  "256x64"};
    }
    std::vector<block_set> sets;
    for (const std::string &text : how.cases) {
        block_set one;
        char rest;
        if (std::sscanf(text.c_str(), "%zux%zu%c", &one.blocks, &one.bytes, &rest) != 2 ||
            one.blocks == 0 || one.bytes == 0) {
            std::fprintf(stderr, "list_move: %s is not BLOCKSxBYTES\n", text.c_str());
            return 2;
        }
        sets.push_back(one);
    }
    mover all(how);
    std::printf(
        "#  blocks x bytes     order        list us       ends      GB/s    copy us      "
        "GB/s  ratio\n");
    bool right = true;
    for (const block_set &one : sets) {
        for (bool random : {false, true}) {
            if (how.order == "both" || random == (how.order == "random")) {
                right = all.run(one, random) && right;
            }
        }
    }
    return right ? 0 : 1;
}
