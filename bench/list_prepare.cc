// What a list of pages costs before its bytes move: the C API's layouts of random pages, their
// tables on a GPU, and a copy from one list to another on a stream. Every byte and every gap is
// checked once.
//
//     make -f bench/list_prepare.mk CUDA=DIR UCX=DIR CUDA_NC=PREFIX OUTPUT=list_prepare
//     ./list_prepare [PAGESxBYTES[r] ...]
//
// Pages lie at twice their length, in random order on both sides; with "r" in order, at twice their
// length on one side and at three times on the other, as rows of two matrices. Prints microseconds,
// medians of 21: "create" is cuda_nc_layout_create_indexed for one side, "prepare" the
// cuda_nc_layout_prepare after it, of a list that is new to the process, "again" that of a layout
// made anew of a list that was there before; "call" is cuda_nc_copy until it returns, "copy" its
// time on the stream, "contiguous" that of cudaMemcpyAsync of as many bytes. Exit status 1: a wrong
// byte; 2: an error.
#include <cuda_nc/cuda_nc.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr unsigned repeats = 21;
constexpr unsigned char gap = 0xa5;

void need(bool is_right, const char *what) {
    if (!is_right) {
        std::fprintf(stderr, "list_prepare: %s\n", what);
        std::exit(2);
    }
}
void need(cudaError_t result, const char *what) {
    need(result == cudaSuccess, what);
}
void need(ucs_status_t result) {
    need(result == UCS_OK, cuda_nc_last_error());
}

unsigned char byte_of(size_t page, size_t at) {
    return static_cast<unsigned char>(page * 31 + at * 7 + at / 251);
}

double median(std::vector<double> all) {
    std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
    return all[all.size() / 2];
}

template <class Work>
double microseconds(Work &&work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
        .count();
}

// Which place each page of a list has, in pages; `seed` 0: in order.
std::vector<int64_t> places(size_t pages, int64_t pitch, uint64_t seed) {
    std::vector<int64_t> made(pages);
    std::iota(made.begin(), made.end(), int64_t{0});
    if (seed != 0) {
        std::shuffle(made.begin(), made.end(), std::mt19937_64(seed));
    }
    for (int64_t &one : made) {
        one *= pitch;
    }
    return made;
}

class bench {
  public:
    bench() {
        need(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "no stream");
        need(cudaEventCreate(&begin_), "no event");
        need(cudaEventCreate(&end_), "no event");
    }

    // False: a wrong byte.
    bool run(size_t pages, size_t bytes, bool rows) {
        const int64_t pitch = rows ? 3 : 2;  // of the target
        const size_t span = static_cast<size_t>(pitch) * pages * bytes;
        char *source, *target;
        need(cudaMalloc(reinterpret_cast<void **>(&source), span), "no GPU memory");
        need(cudaMalloc(reinterpret_cast<void **>(&target), span), "no GPU memory");
        const std::vector<int64_t> from = places(pages, 2, rows ? 0 : 1),
                                   to = places(pages, pitch, rows ? 0 : 2);
        std::vector<unsigned char> image(span, 0);
        for (size_t page = 0; page < pages; ++page) {
            unsigned char *its = &image[static_cast<size_t>(from[page]) * bytes];
            for (size_t i = 0; i < bytes; ++i) {
                its[i] = byte_of(page, i);
            }
        }
        need(cudaMemcpy(source, image.data(), span, cudaMemcpyHostToDevice), "a copy failed");
        need(cudaMemset(target, gap, span), "a fill failed");
        need(cudaDeviceSynchronize(), "a fill failed");

        std::vector<double> creates, prepares, agains, calls, copies, plain;
        cuda_nc_layout_t sides[2] = {};
        for (unsigned i = 0; i < repeats; ++i) {
            const std::vector<int64_t> list = places(pages, 2, rows ? 0 : 3 + i);
            cuda_nc_layout_t once;
            creates.push_back(microseconds([&] { once = create(list, bytes); }));
            prepares.push_back(microseconds([&] { need(cuda_nc_layout_prepare(once, 0)); }));
            cuda_nc_layout_destroy(once);
            cuda_nc_layout_destroy(sides[0]);
            sides[0] = create(from, bytes);
            agains.push_back(microseconds([&] { need(cuda_nc_layout_prepare(sides[0], 0)); }));
        }
        sides[1] = create(to, bytes);
        need(cuda_nc_layout_prepare(sides[1], 0));
        for (unsigned i = 0; i < repeats; ++i) {
            copies.push_back(on_stream([&] {
                calls.push_back(microseconds(
                    [&] { need(cuda_nc_copy(sides[0], source, sides[1], target, stream_)); }));
            }));
        }
        const bool right = check(target, to, bytes, &image);
        for (unsigned i = 0; i < repeats; ++i) {
            plain.push_back(on_stream([&] {
                need(cudaMemcpyAsync(target, source, pages * bytes, cudaMemcpyDefault, stream_),
                     "a copy failed");
            }));
        }
        std::printf("%8zu %8zu%s %9.0f %9.0f %9.1f %9.1f %9.1f %11.1f%s\n", pages, bytes,
                    rows ? "r" : " ", median(creates), median(prepares), median(agains),
                    median(calls), median(copies), median(plain), right ? "" : "  WRONG BYTES");
        std::fflush(stdout);
        for (cuda_nc_layout_t side : sides) {
            cuda_nc_layout_destroy(side);
        }
        need(cudaFree(source), "freeing failed");
        need(cudaFree(target), "freeing failed");
        return right;
    }

  private:
    static cuda_nc_layout_t create(const std::vector<int64_t> &displacements, size_t bytes) {
        cuda_nc_layout_t made;
        need(cuda_nc_layout_create_indexed(static_cast<int64_t>(displacements.size()), nullptr,
                                           displacements.data(), static_cast<int64_t>(bytes),
                                           &made));
        return made;
    }

    template <class Work>
    double on_stream(Work &&work) {
        need(cudaEventRecord(begin_, stream_), "an event failed");
        work();
        need(cudaEventRecord(end_, stream_), "an event failed");
        need(cudaEventSynchronize(end_), "the GPU's work failed");
        float milliseconds;
        need(cudaEventElapsedTime(&milliseconds, begin_, end_), "an event failed");
        return double{milliseconds} * 1e3;
    }

    static bool check(const char *target, const std::vector<int64_t> &to, size_t bytes,
                      std::vector<unsigned char> *room) {
        need(cudaMemcpy(room->data(), target, room->size(), cudaMemcpyDeviceToHost),
             "a copy failed");
        for (size_t page = 0; page < to.size(); ++page) {
            unsigned char *its = &(*room)[static_cast<size_t>(to[page]) * bytes];
            for (size_t i = 0; i < bytes; ++i) {
                if (its[i] != byte_of(page, i)) {
                    return false;
                }
                its[i] = gap;
            }
        }
        return std::all_of(room->begin(), room->end(),
                           [](unsigned char one) { return one == gap; });
    }

    cudaStream_t stream_;
    cudaEvent_t begin_, end_;
};

}  // namespace

int main(int argc, char **argv) {
    std::vector<std::string> cases(argv + 1, argv + argc);
    if (cases.empty()) {
        cases = {"65536x4096", "32768x8192", "16384x16384",
                 "8192x32768", "4096x65536", "112000x44032"};
    }
    cudaDeviceProp properties;
    need(cudaGetDeviceProperties(&properties, 0), "no GPU");
    std::printf("# %s, %s\n%8s %8s  %9s %9s %9s %9s %9s %11s\n", properties.name, cuda_nc_version(),
                "pages", "bytes", "create", "prepare", "again", "call", "copy", "contiguous");
    bench all;
    bool right = true;
    for (const std::string &one : cases) {
        size_t pages, bytes;
        char kind[2] = "";
        need(std::sscanf(one.c_str(), "%zux%zu%1s", &pages, &bytes, kind) >= 2 && pages != 0 &&
                 bytes != 0 && (*kind == '\0' || *kind == 'r'),
             "a case is PAGESxBYTES, or PAGESxBYTESr");
        right = all.run(pages, bytes, *kind == 'r') && right;
    }
    return right ? 0 : 1;
}
