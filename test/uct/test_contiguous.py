"""Contiguous messages from GPU memory that UCX cannot share between processes: they are ours."""
import pytest

from support import uct

LIMIT = uct.LIMIT

CASES = [(release, way) for release in (*uct.RELEASE_NAMES, uct.BUNDLED) for way in uct.ways(release)]
# As if all GPU memory were a pool's.
POOL = {**uct.DIRECT, "UCX_CUDA_NC_SIM_SHARED": "n"}
MANAGED = {**uct.DIRECT, "UCX_CUDA_NC_SIM_SHARED": "managed"}
ALL = {**uct.DIRECT, "UCX_CUDA_NC_CONTIGUOUS": "y"}
KINDS = ("--kinds", "gpvhci", "--plain-sends", "--calls", "tsmr")
PLAIN = ("--kinds", "p", "--plain-sends", "--calls", "tsmr")
# Where bytes may go in fragments contiguous memory only sends: UCX itself would write into it.
SENDS = ("--kinds", "gPvhci", "--calls", "tsmar")
CIRCUMSTANCES = {
    "memory of a pool": (POOL, KINDS),
    "managed memory": (MANAGED, KINDS),
    "managed memory, slots": ({**MANAGED, "UCX_CUDA_NC_PIPE": "n"}, KINDS),
    "managed memory, to oneself": (MANAGED, (*KINDS, "--self")),
    "managed memory, kernels fail": ({**MANAGED, "UCX_CUDA_NC_SIM_FAULTS": "kernel:20"},
                                     (*SENDS, "--may-fail")),
    "one side's memory is managed": (ALL, (*KINDS, "--odd", "UCX_CUDA_NC_SIM_SHARED=managed")),
    "all contiguous memory": (ALL, KINDS),
    "memory made of pieces": ({**ALL, "UCX_CUDA_NC_SIM_SHARED": "pieces"}, KINDS),
    "three processes": (POOL, (*PLAIN, "--ranks", 3)),
    "wakeup": (POOL, (*PLAIN, "--wakeup")),
    "slots": ({**POOL, "UCX_CUDA_NC_PIPE": "n"}, KINDS),
    "little memory to lend": ({**POOL, "UCX_CUDA_NC_STAGING_SIZE": "1M"}, SENDS),
    "launches fail": ({**POOL, "UCX_CUDA_NC_SIM_FAULTS": "launch:5+"}, SENDS),
    "kernels fail": ({**POOL, "UCX_CUDA_NC_SIM_FAULTS": "kernel:20"}, (*SENDS, "--may-fail")),
    # What a host's receive has no use for must not keep later messages from their way.
    "some receives are in host memory": (ALL, ("--kinds", "pch", "--plain-sends", "--calls", "t")),
    "one side's memory is a pool's": (ALL, (*KINDS, "--odd", "UCX_CUDA_NC_SIM_SHARED=n")),
    "peer errors": ({**POOL, **uct.SMALL, "UCX_POSIX_ERROR_HANDLING": "y"},
                    (*SENDS, "--peer-errors")),
    "endpoints are closed": ({**POOL, "UCX_POSIX_ERROR_HANDLING": "y"},
                             (*SENDS, "--close-batch", 2, "--ranks", 3, "--window", 16)),
}


@pytest.mark.parametrize("release, way", CASES)
def test_releases(run, fetch, build, release, way):
    fetch(release)
    env = uct.environment(uct.LOADED[way], POOL, release=release)
    uct.run_matrix(run, build("matrix"), env, uct.SEED, KINDS)


@pytest.mark.parametrize("what", CIRCUMSTANCES)
@pytest.mark.parametrize("seed", range(1, 1 + uct.REPEATS))
def test_circumstances(run, fetch, build, what, seed):
    fetch(uct.LAST)
    variables, arguments = CIRCUMSTANCES[what]
    env = uct.environment(uct.LOADED["plugin"], variables, release=uct.LAST)
    uct.run_matrix(run, build("matrix"), env, uct.SEED + seed, arguments)


@pytest.mark.parametrize("shared", ["n", "managed"])
@pytest.mark.parametrize("call", ["t", "s", "m", "r"])
def test_go_from_gpu_to_gpu(run, fetch, build, call, shared):
    """None goes through host memory, whatever call sends it."""
    fetch(uct.LAST)
    env = uct.environment(uct.LOADED["plugin"], uct.SMALL, {"UCX_CUDA_NC_SIM_SHARED": shared},
                          release=uct.LAST)
    uct.run_knowing_requests(run, build("matrix"), env, "--least", 4096, "--largest", 100000,
                             "--kinds", "p", "--plain-sends", "--calls", call)
