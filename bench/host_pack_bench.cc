// The host executor: pack and unpack of each layout, whole and in fragments of 8 KiB as UCX asks
// for them, and a memcpy that touches as many cache lines. Bytes a second are packed bytes.
//
//     make host_pack_bench && ./host_pack_bench --benchmark_filter=vector
//         (CUDA_NC_BENCH_BYTES: packed bytes of each layout, 16 MiB)
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>

#include "bench/host_layouts.hpp"
#include "ucs/exec/host/host_executor.hpp"
#include "ucs/exec/host/split.hpp"

namespace {

using namespace cuda_nc;

enum class work { pack, unpack, fragments, lines };

void run(benchmark::State &state, const layout_ref &moved, work what) {
    const uint64_t size = moved->packed_size();
    const uint64_t span = static_cast<uint64_t>(moved->upper_bound());
    const bench::memory buffer = bench::allocate(span), packed = bench::allocate(size);
    const uint64_t touched = std::min(bench::touched_lines(*moved), span);
    for (auto iteration : state) {
        (void)iteration;
        switch (what) {
            case work::pack:
                exec::host_pack(moved->view(), buffer.get(), 0, packed.get(), size);
                break;
            case work::unpack:
                exec::host_unpack(moved->view(), buffer.get(), 0, packed.get(), size);
                break;
            case work::fragments:
                for (uint64_t offset = 0; offset < size; offset += 8192) {
                    exec::host_pack(moved->view(), buffer.get(), offset, packed.get(),
                                    std::min<uint64_t>(8192, size - offset));
                }
                break;
            case work::lines:
                bench::copy_lines(packed.get(), buffer.get(), touched, size);
                break;
        }
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * size));
}

}  // namespace

int main(int argc, char **argv) {
    const char *text = std::getenv("CUDA_NC_BENCH_BYTES");
    const uint64_t bytes = text != nullptr ? std::strtoull(text, nullptr, 0) : 16 << 20;
    for (const bench::host_layout &one : bench::make_host_layouts(bytes)) {
        const std::pair<const char *, work> works[] = {{"/pack", work::pack},
                                                       {"/unpack", work::unpack},
                                                       {"/fragments", work::fragments},
                                                       {"/lines", work::lines}};
        for (const auto &[name, what] : works) {
            benchmark::RegisterBenchmark((one.name + name).c_str(), run, one.what, what)
                ->Unit(benchmark::kMicrosecond)
                ->UseRealTime();
        }
    }
    benchmark::Initialize(&argc, argv);
    benchmark::AddCustomContext("host_simd", exec::host_simd_name());
    benchmark::AddCustomContext("host_threads", std::to_string(exec::max_host_threads()));
    benchmark::RunSpecifiedBenchmarks();
}
