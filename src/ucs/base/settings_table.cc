#include "ucs/base/settings_table.hpp"

namespace cuda_nc {
namespace {

using kind = setting_kind;

constexpr char general[] = "General";
constexpr char host[] = "Host memory";
constexpr char gpu_memory[] = "GPU memory";
constexpr char of_transport[] = "The transport cuda_nc";
constexpr char simulated[] = "The simulated GPU";

}  // namespace

#define FIELD(group_, member_, name_, default_, choices_, kind_, help_) \
    {                                                                   \
        group_, name_, default_, choices_, help_, kind_,                \
            [](settings &s) -> void * { return &s.member_; }            \
    }

const setting_field settings_table[] = {
    FIELD(general, enable, "ENABLE", "y", nullptr, kind::boolean,
          "Serve derived datatypes; n: the job runs as if the plugin were not there."),
    FIELD(
        general, stats, "STATS", "n", nullptr, kind::boolean,
        "Print at exit what was served: messages and bytes for each layout shape, the path taken, "
        "and why."),
    FIELD(general, trace, "TRACE", "", nullptr, kind::file,
          "Write a timeline of direct messages at exit, for chrome://tracing or Perfetto; %p "
          "becomes the process number, which without %p comes before the suffix. It holds "
          "262144 events. Empty: none."),
    FIELD(
        general, gpu, "GPU", "auto", "auto|cuda|sim|none", kind::text,
        "GPU backend; auto: CUDA where there is a GPU; sim: a simulated GPU, for tests; none: GPU "
        "memory is left to the MPI library."),
    FIELD(
        host, host_engine, "HOST_ENGINE", "auto", "auto|always|never", kind::text,
        "Who packs derived datatypes in host memory; auto: the plugin where it is faster or where "
        "the MPI library packs wrongly; always: the plugin; never: the MPI library."),
    FIELD(host, host_simd, "HOST_SIMD", "auto", "auto|avx512|avx2|sse2|scalar", kind::text,
          "Highest instruction set for packing in host memory; auto: the best that the processor "
          "has."),
    FIELD(host, host_threads, "HOST_THREADS", "1", nullptr, kind::number,
          "Threads, the calling one included, that share a call of 4 MiB or more in host memory, "
          "but no more than the processors it may run on; 0 or 1: no extra thread."),
    FIELD(gpu_memory, staging_size, "STAGING_SIZE", "256M", nullptr, kind::size,
          "Most staging memory of a process, pinned and on GPUs (4K at least); memory lent for "
          "direct messages has bounds of its own: half of this on GPUs and an eighth in host "
          "memory; for MPICH's collectives there is as much again, pinned, and as much on GPUs."),
    FIELD(gpu_memory, fragment_size, "FRAGMENT_SIZE", "2M", nullptr, kind::size,
          "Bytes that one launch packs ahead into staging memory; unset: chosen by the machine's "
          "figures (PROFILE)."),
    FIELD(gpu_memory, zero_copy, "ZERO_COPY", "auto", "auto|y|n", kind::text,
          "y: kernels access pinned host memory directly; n: they use GPU memory, and copies move "
          "the packed bytes; auto: chosen by the machine's figures (PROFILE)."),
    FIELD(gpu_memory, worklist_cache_size, "WORKLIST_CACHE_SIZE", "256M", nullptr, kind::size,
          "GPU memory on each device for the work lists of irregular layouts; the least recently "
          "used one leaves first."),
    FIELD(
        gpu_memory, worklist_cache_lists, "WORKLIST_CACHE_LISTS", "16384", nullptr, kind::number,
        "Most work lists kept for each device, about 1 KB of host memory each; the least recently "
        "used one leaves first."),
    FIELD(gpu_memory, max_sms, "MAX_SMS", "0", nullptr, kind::number,
          "Most multiprocessors for a pack kernel and most thread blocks for a pipe; 0: no limit, "
          "but 32 for kernels on pinned memory, which the bus limits; 1 to 15: no mover either."),
    FIELD(gpu_memory, profile, "PROFILE", "auto", nullptr, kind::file,
          "File with this machine's figures, from nc_perftest tune; auto: the user's file for this "
          "host; none: usual figures for its GPUs."),
    FIELD(gpu_memory, iov, "IOV", "y", nullptr, kind::boolean,
          "Send and receive UCX's lists of buffers (UCP_DATATYPE_IOV) in GPU memory by kernels; n: "
          "they are UCX's own, a copy for each buffer."),
    FIELD(of_transport, transport, "TRANSPORT", "auto", "auto|y|n", kind::text,
          "Register the transport cuda_nc with UCX 1.19 to 1.23; auto: where UCX_TLS names it, and "
          "where the process may see a GPU and UCX_TLS does not leave it out."),
    FIELD(of_transport, carriers, "CARRIERS", "posix,tcp,self", nullptr, kind::list,
          "UCX transports that cuda_nc may stand on, separated by commas, named as ucx_info -d "
          "prints them."),
    FIELD(of_transport, direct, "DIRECT", "y", nullptr, kind::boolean,
          "Move messages from GPU memory to GPU memory (direct messages); n: through host memory."),
    FIELD(
        of_transport, one_sided, "ONE_SIDED", "y", nullptr, kind::boolean,
        "Gather puts and gets between GPUs of a machine into lists that one kernel moves, and "
        "those "
        "between host memory of processes, of programs that use them and no tags (NIXL, OpenSHMEM, "
        "MPI windows), into calls of the operating system. UCX reads long messages of contiguous "
        "GPU "
        "memory by gets, too. n: they are UCX's own."),
    FIELD(
        of_transport, contiguous, "CONTIGUOUS", "auto", "auto|y|n", kind::text,
        "Send contiguous GPU memory, from 64 KiB on and within a machine, as direct messages too; "
        "auto: memory that UCX cannot share between processes (cudaMallocAsync, managed memory), "
        "which it moves through host memory; y: all; n: it is UCX's own, but for a short MPI_Send "
        "(DIRECT_THRESH)."),
    FIELD(
        of_transport, direct_thresh, "DIRECT_THRESH", "4097", nullptr, kind::size,
        "Smallest direct message; unset: 1 B for MPI_Isend, and for MPI_Send what is longer than 4 "
        "KiB, or than the machine's figures say."),
    FIELD(of_transport, pipe, "PIPE", "y", nullptr, kind::boolean,
          "Move direct messages by pulls and by pipes (a kernel on each GPU); n: by slots, with a "
          "launch for each piece."),
    FIELD(of_transport, pull_max, "PULL_MAX", "64M", nullptr, kind::size,
          "Largest direct message that the receiver's GPU reads from the sender's memory itself, "
          "where that pays; at most 512M; 0: never."),
    FIELD(of_transport, copy_engines, "COPY_ENGINES", "y", nullptr, kind::boolean,
          "Let copy engines of the receiver's GPU pull a message that lies in rows on both sides, "
          "where they are faster than a kernel."),
    FIELD(of_transport, pipe_patience, "PIPE_PATIENCE", "1000", nullptr, kind::number,
          "Microseconds that a pipe's kernel waits without progress before it leaves the GPU, at "
          "most 100000; it is launched again later."),
    FIELD(of_transport, mover, "MOVER", "y", nullptr, kind::boolean,
          "Move up to 1 MiB, of direct messages, of packs into pinned memory and within a GPU, by "
          "a kernel that stays on the GPU while messages keep coming and is given orders in place "
          "of launches. n: they are launched."),
    FIELD(of_transport, mover_idle, "MOVER_IDLE", "50", nullptr, kind::number,
          "Most microseconds that this kernel waits for the next message before it leaves the GPU, "
          "1 to 1000; less where messages usually come sooner after each other."),
    FIELD(of_transport, mover_always, "MOVER_ALWAYS", "n", nullptr, kind::boolean,
          "Launch this kernel whenever something is to be moved by it (of several messages every "
          "second time a set, which leaves), whether it pays or not, and though the application's "
          "kernels may keep the GPU until these bytes have come: for tests."),
    FIELD(of_transport, network_slots, "NETWORK_SLOTS", "y", nullptr, kind::boolean,
          "Move direct messages to other hosts too, where the carrier's network reads and writes "
          "GPU memory; not yet run on such hardware."),
    FIELD(simulated, sim_devices, "SIM_DEVICES", "2", nullptr, kind::number,
          "Number of simulated GPUs."),
    FIELD(simulated, sim_memory, "SIM_MEMORY", "1G", nullptr, kind::size,
          "Memory of each simulated GPU."),
    FIELD(simulated, sim_device, "SIM_DEVICE", "0", nullptr, kind::number,
          "Simulated GPU on which cuda_nc_sim_malloc allocates."),
    FIELD(simulated, sim_shared, "SIM_SHARED", "y", "y|n|pieces|managed", kind::text,
          "Whether processes can share memory of cuda_nc_sim_malloc; n: not, as that of "
          "cudaMallocAsync; pieces: in pieces, as that of cuMemCreate; managed: not, and the CPU "
          "may touch it, as that of cudaMallocManaged."),
    FIELD(simulated, sim_delay, "SIM_DELAY", "50", nullptr, kind::number,
          "Longest random delay before an operation of a simulated GPU, in microseconds."),
    FIELD(simulated, sim_seed, "SIM_SEED", "1", nullptr, kind::number,
          "Seed of the delays and of the order in which pieces of a launch run."),
    FIELD(simulated, sim_faults, "SIM_FAULTS", "", nullptr, kind::list,
          "Faults to inject, such as alloc:3,launch:10+ (docs/manual/simulated-gpu.md). Empty: "
          "none."),
};
#undef FIELD

}  // namespace cuda_nc
