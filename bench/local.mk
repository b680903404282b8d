# Sources of bench; see Makefile.am for the variables.
# The demo program is built with an MPI's compiler, by mpi_layouts.mk.
EXTRA_DIST += bench/mpi_layouts.cc bench/mpi_layouts.mk bench/layout_catalogue.cc \
	bench/layout_catalogue.hpp bench/test_memory.cc bench/test_memory.hpp
EXTRA_PROGRAMS += host_pack_bench
host_pack_bench_SOURCES = bench/bench_cases.hpp bench/bench_layout.hpp bench/host_pack_bench.cc
host_pack_bench_LDADD = libcuda_nc_core.la $(BENCHMARK_LIBS)
EXTRA_DIST += bench/mpi_sizes.cc bench/mpi_sizes.mk bench/mpi_pairs.cc bench/mpi_pairs.mk
EXTRA_DIST += bench/mpi_pack_bench.cc bench/idle_cost.cc bench/idle_cost.sh bench/busy_gpu.cu bench/beside.cu
EXTRA_DIST += bench/results/2026-11-21-h200x2-mpi_layouts.md
EXTRA_DIST += bench/results/2026-11-21-h200x2-pipe_messages.md
EXTRA_DIST += bench/results/2026-11-21-h200-messages.md
EXTRA_DIST += bench/results/2026-11-21-model.md
EXTRA_DIST += bench/results/2026-11-21-h200x2-direct.md
EXTRA_DIST += bench/results/2026-11-21-h100x1-host.md bench/results/2026-11-21-host-fragments.md \
	bench/results/2026-11-21-host-pairs.md
EXTRA_DIST += bench/results/2026-11-21-h200-h100-kernels.md
EXTRA_DIST += bench/results/2026-11-21-h200-nc_perftest.md bench/results/2026-11-21-h200x2-pipes.md
EXTRA_PROGRAMS += pipe_bench
pipe_bench_SOURCES = bench/pipe_bench.cc
pipe_bench_LDADD = libcuda_nc_core.la
EXTRA_DIST += bench/peer_cupy.py bench/peer_torch.py
EXTRA_DIST += bench/results/2026-11-22-h100-host-pairs.md \
	bench/results/2026-11-22-h200-bars.md \
	bench/results/2026-11-22-h200-blocks.md \
	bench/results/2026-11-22-h200-copies.md \
	bench/results/2026-11-22-h200-sectors.md \
	bench/results/2026-11-22-h200-launches.md \
	bench/results/2026-11-22-h200-messages.md \
	bench/results/2026-11-22-h200-small-messages.md \
	bench/results/2026-11-22-host-threads.md
