"""Lists of buffers in GPU memory (UCP_DATATYPE_IOV) by every call of UCP that sends and receives."""
import re

import pytest

from support import uct

LIMIT = uct.LIMIT

CASES = [(release, way) for release in (*uct.RELEASE_NAMES, uct.BUNDLED) for way in uct.ways(release)]
CALLS = {"tag": "t", "synchronous": "s", "probed": "m", "active": "a", "eager": "e",
         "rendezvous": "r"}
# These releases crash where an active message of several eager pieces is received after its callback.
KEEPS_NO_PIECES = ("1.19.0", "1.20.1", "1.21.0")
STATS = {"UCX_CUDA_NC_STATS": "y"}
# Variables, and arguments of the matrix. "v" are such lists.
CIRCUMSTANCES = {
    "the other side is anything": ({}, ("--kinds", "ghciv")),
    "contiguous GPU memory": (uct.DIRECT, ("--kinds", "gpv", "--calls", "tsmr", "--ranks", 3)),
    "to oneself": ({}, ("--kinds", "ghciv", "--self", "--ranks", 3)),
    "wakeup": ({}, ("--kinds", "v", "--wakeup")),
    "peer errors": ({**uct.SMALL, "UCX_POSIX_ERROR_HANDLING": "y"},
                    ("--kinds", "ghciv", "--peer-errors", "--largest", 20000)),
    "small": (uct.SMALL, ("--kinds", "v", "--largest", 3000)),
    "no transport": ({"UCX_CUDA_NC_TRANSPORT": "n"}, ("--kinds", "ghciv")),
    "no direct messages": ({"UCX_CUDA_NC_DIRECT": "n"}, ("--kinds", "ghciv")),
    "old protocols": ({"UCX_PROTO_ENABLE": "n"}, ("--kinds", "ghciv")),
    "slots": ({"UCX_CUDA_NC_PIPE": "n"}, ("--kinds", "v")),
    "launches fail": ({"UCX_CUDA_NC_SIM_FAULTS": "launch:5+"}, ("--kinds", "v")),
    "endpoints are closed": ({"UCX_POSIX_ERROR_HANDLING": "y"},
                             ("--kinds", "v", "--close-batch", 2, "--ranks", 3, "--window", 16)),
    "a process is killed": ({"UCX_TLS": "cuda_nc,self", "UCX_CUDA_NC_CARRIERS": "tcp",
                             "UCX_KEEPALIVE_INTERVAL": "1s"},
                            ("--kinds", "v", "--kill-batch", 2, "--ranks", 3, "--window", 16)),
}


def sent_direct(result):
    """How many messages each process has sent from GPU to GPU."""
    return [sum(int(number) for number in re.findall(r"(\d+) (?:by|straight)", line.split(";")[0]))
            for line in result.lines() if "GPU to GPU: sent" in line]


@pytest.mark.parametrize("release, way", CASES)
def test_releases(run, fetch, build, release, way):
    fetch(release)
    env = uct.environment(uct.LOADED[way], release=release)
    if release in KEEPS_NO_PIECES:
        all_calls, short = "tsmr", ("--calls", "ae", "--largest", 3000)
        uct.run_matrix(run, build("matrix"), env, uct.SEED, ("--kinds", "ghciv", *short))
    else:
        all_calls = "tsmaer"
    uct.run_matrix(run, build("matrix"), env, uct.SEED, ("--kinds", "ghciv", "--calls", all_calls))


@pytest.mark.parametrize("release", (*uct.RELEASE_NAMES, uct.BUNDLED))
@pytest.mark.parametrize("call", [name for name in CALLS if name != "eager"])
def test_go_from_gpu_to_gpu(run, fetch, build, release, call):
    """Every message of any size is a direct one, whatever call sends it."""
    fetch(release)
    env = uct.environment(uct.LOADED[uct.ways(release)[0]], uct.SMALL, release=release)
    uct.run_knowing_requests(run, build("matrix"), env, "--largest", 3000, "--kinds", "v",
                             "--calls", CALLS[call])


@pytest.mark.parametrize("what", CIRCUMSTANCES)
@pytest.mark.parametrize("seed", range(1, 1 + uct.REPEATS))
def test_circumstances(run, fetch, build, what, seed):
    fetch(uct.LAST)
    variables, arguments = CIRCUMSTANCES[what]
    calls = () if "--calls" in arguments else ("--calls", "tsmaer")
    env = uct.environment(uct.LOADED["plugin"], variables, release=uct.LAST)
    uct.run_matrix(run, build("matrix"), env, uct.SEED + seed, (*arguments, *calls))


def test_lists_in_host_memory_are_ucx_own(run, fetch, build):
    fetch(uct.LAST)
    env = uct.environment(uct.LOADED["plugin"], STATS, release=uct.LAST)
    result = run(build("matrix"), "--seed", uct.SEED, "--kinds", "i", "--calls", "tsmaer", env=env)
    assert "RIGHT" in result.output
    assert "messages            bytes" not in result.output and sum(sent_direct(result)) == 0
