# Sources of bench; see Makefile.am for the variables.
# The demo program is built with an MPI's compiler, by mpi_layouts.mk.
EXTRA_DIST += bench/mpi_layouts.cc bench/mpi_layouts.mk bench/layout_catalogue.cc \
	bench/layout_catalogue.hpp bench/test_memory.cc bench/test_memory.hpp
EXTRA_DIST += bench/host_layouts.hpp
if ENABLE_TOOLS
EXTRA_PROGRAMS += host_pack_bench
host_pack_bench_SOURCES = bench/host_layouts.hpp bench/host_pack_bench.cc
host_pack_bench_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
host_pack_bench_LDADD = $(tools_library) libcuda_nc_core.la $(BENCHMARK_LIBS)
endif
EXTRA_DIST += bench/first_message.cc bench/first_message.mk bench/mpi_sides.cc bench/mpi_sides.mk bench/mpi_sizes.cc bench/mpi_sizes.mk bench/mpi_pairs.cc bench/mpi_pairs.mk bench/mpi_turns.cc bench/mpi_turns.mk bench/mpi_windows.cc bench/mpi_windows.mk bench/mpi_local.cc bench/mpi_local.mk bench/two_ranks.hpp bench/two_ranks.mk
EXTRA_DIST += bench/peer_window.hpp bench/strided_put.cc bench/strided_put.mk
EXTRA_DIST += bench/ucp_lists.cc bench/ucp_lists.mk
EXTRA_DIST += bench/list_move.cc bench/list_move.mk
EXTRA_DIST += bench/list_prepare.cc bench/list_prepare.mk
EXTRA_DIST += bench/stencil.cu bench/stencil.mk bench/stencil_buffer.hpp bench/stencil_check.cc \
	bench/stencil_check.hpp bench/stencil_cpu.cc bench/stencil_exchange.cc \
	bench/stencil_exchange.hpp bench/stencil_grid.hpp bench/stencil_main.cc bench/stencil_run.cc \
	bench/stencil_run.hpp bench/stencil_work.hpp
EXTRA_DIST += bench/mpi_pack_bench.cc bench/idle_cost.cc bench/idle_cost.sh bench/busy_gpu.cu bench/beside.cu
EXTRA_PROGRAMS += pipe_bench
pipe_bench_SOURCES = bench/pipe_bench.cc
pipe_bench_LDADD = libcuda_nc_core.la
EXTRA_PROGRAMS += mover_probe
mover_probe_SOURCES = bench/mover_probe.cc
mover_probe_LDADD = libcuda_nc_core.la
EXTRA_DIST += bench/against_stock.py bench/peer_cupy.py bench/peer_layouts.py bench/peer_torch.py
