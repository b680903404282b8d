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
    "closed before": (TCP, SLOTS, ["--closes", "--within", 3000]),
    "peer errors": ({**POSIX, "UCX_POSIX_ERROR_HANDLING": "y"}, SLOTS,
                    ["--peer-errors", "--sleeps", "poll"]),
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
