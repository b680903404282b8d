"""Receives whose sender is killed: they end, whatever the receiver does meanwhile. A receiver looks
for its senders every four seconds."""
import re

import pytest

from support import uct

LIMIT = uct.LIMIT
WITH = {**uct.LOADED["plugin"], "UCX_TLS": "cuda_nc,self"}
POSIX = {"UCX_CUDA_NC_CARRIERS": "posix"}
TCP = {"UCX_CUDA_NC_CARRIERS": "tcp"}
SLOTS = {"UCX_CUDA_NC_PIPE": "n"}
PIPE = {"UCX_CUDA_NC_PULL_MAX": 0}
CASES = {
    "sleeping in poll": (POSIX, SLOTS, ["--sleeps", "poll"]),
    "sleeping in ucp_worker_wait": (POSIX, PIPE, ["--sleeps", "wait"]),
    "sleeping over tcp": (TCP, SLOTS, ["--sleeps", "poll", "--closes"]),
    "fragments": (POSIX, {}, ["--fragments"]),
    "fragments, sleeping": (POSIX, {}, ["--fragments", "--sleeps", "wait", "--one-way"]),
    # UCX frees its endpoint.
    "receiver without an endpoint": (TCP, SLOTS, ["--one-way"]),
    "receiver without an endpoint, pipe": (TCP, PIPE, ["--one-way"]),
    "closed before": (TCP, SLOTS, ["--closes", "--within", 3000]),
    "peer errors": ({**POSIX, "UCX_POSIX_ERROR_HANDLING": "y", "UCX_KEEPALIVE_INTERVAL": "1s"},
                    SLOTS, ["--peer-errors", "--sleeps", "poll"]),
}


def assert_ended(result, rounds):
    assert "illegal access" not in result.output
    ended = re.search(r"RIGHT: (\d+) receives ended well, (\d+) with an error", result.output)
    assert ended and sum(map(int, ended.groups())) == rounds


@pytest.mark.parametrize("case", CASES)
def test_receive_ends(run, build, fetch, case):
    fetch(uct.LAST)
    carrier, way, arguments = CASES[case]
    rounds = 10 if uct.FULL else 2
    result = run(build("lost"), "--rounds", rounds, "--seed", uct.SEED + len(case), *arguments,
                 env=uct.environment(WITH, carrier, way, release=uct.LAST))
    assert_ended(result, rounds)


@pytest.mark.parametrize("release", (*uct.RELEASE_NAMES, uct.BUNDLED))
def test_ucp_frees_its_endpoint(run, build, fetch, release):
    """What we know of UCP's requests and endpoints holds in each release."""
    fetch(release)
    result = run(build("lost"), "--rounds", 1, "--one-way",
                 env=uct.environment(uct.LOADED["shim"], {"UCX_TLS": "cuda_nc,self"}, TCP, SLOTS,
                                     release=release))
    assert_ended(result, 1)
