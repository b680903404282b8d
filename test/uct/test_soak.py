"""Random messages of four processes for a time: memory, descriptors and mappings of each stay as they
are."""
import pytest

from support import uct

SECONDS = 120 if uct.FULL else 20
LIMIT = SECONDS + 240
ROUTES = {"all": {}, "pipe": {"UCX_CUDA_NC_PULL_MAX": 0}, "slots": {"UCX_CUDA_NC_PIPE": "n"},
          "tcp": {"UCX_CUDA_NC_CARRIERS": "tcp"}}


@pytest.mark.parametrize("route", ROUTES if uct.FULL else ["all"])
def test_soak(run, fetch, build, route):
    fetch(uct.LAST)
    # Every message has a datatype of its own: a small cache of work lists is soon full.
    env = uct.environment(uct.LOADED["plugin"], uct.DIRECT,
                          {"UCX_TLS": "cuda_nc,self", "UCX_CUDA_NC_WORKLIST_CACHE_SIZE": "1M",
                           "UCX_CUDA_NC_SIM_DELAY": 1}, ROUTES[route], release=uct.LAST)
    result = run(build("matrix"), "--seed", uct.SEED, "--ranks", 4, "--window", 24, "--kinds",
                 "gggchi", "--largest", 300000, "--seconds", SECONDS, env=env)
    assert "illegal access" not in result.output
