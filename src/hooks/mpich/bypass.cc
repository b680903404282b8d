#include "hooks/mpich/bypass.hpp"

#include "hooks/mpich/typed_memory.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc::hooks::local {
namespace {

// Whether messages of this process may pass us by. Before MPI_Init that is not known.
enum class answer { no, yes, not_yet };

answer may_be_passed() noexcept {
    int is_ready = 0, ranks = 0;
    if (pmpi().Initialized(&is_ready) != 0 || is_ready == 0) {
        return answer::not_yet;
    }
    return config().local_processes != 1 && pmpi().mpi->has_own_shared_memory() &&
                   pmpi().Comm_size(world, &ranks) == 0 && ranks > 1
               ? answer::yes
               : answer::no;
}

bool still_watches() noexcept {
    const answer now = may_be_passed();
    if (now == answer::no) {
        watches_for_bypass.store(false, std::memory_order_relaxed);
    }
    return now == answer::yes;
}

}  // namespace

void say_bypass() noexcept {
    if (still_watches() && watches_for_bypass.exchange(false, std::memory_order_relaxed)) {
        nc_warn(
            "MPICH moves messages within this machine by its own shared memory, past UCX and this "
            "plugin, and may touch GPU memory with the CPU: set MPIR_CVAR_NOLOCAL=1");
    }
}

void look_for_bypass(const void *buffer, handle type, count_t count) noexcept {
    if (count > 0 && !is_predefined(type) && still_watches() && has_gpu_memory(buffer, type, 0)) {
        say_bypass();
    }
}

}  // namespace cuda_nc::hooks::local
