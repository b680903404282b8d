"""Two copies of UCX in a process: libraries bring their own, and a process may load several of them.
Each copy gets the calls of those that use it, in whatever order they are loaded, and however the
product is."""
import itertools
import re

import pytest

from support import mpi, product, uct

LIMIT = 60
# How a copy's libraries are called: as packages rename them, or with the ending by which UCX finds
# its modules; None: as UCX calls them.
MANGLED = "lib{part}-1a2b3c4d.so.0.0.0"
RENAMED = "lib{part}-own.so.0"
# Two clients, each with a UCX.
CLIENTS = [
    (("1.19.0", MANGLED), (uct.LAST, None)),
    (("1.20.1", MANGLED), (uct.LAST, RENAMED)),
    ((uct.LAST, None), (uct.LAST, RENAMED)),
]
# Beside Open MPI, which uses UCX 1.22.
BESIDE_MPI = [("1.19.0", MANGLED), ("1.21.0", RENAMED), (uct.LAST, RENAMED)]
SIM = {"UCX_CUDA_NC_GPU": "sim", "UCX_CUDA_NC_SIM_DELAY": 20, "UCX_WARN_UNUSED_ENV_VARS": "n"}
TRANSPORT = {"UCX_CUDA_NC_TRANSPORT": "y", "UCX_TLS": "cuda_nc,posix,self",
             "UCX_CUDA_NC_DIRECT_THRESH": 1, "UCX_RNDV_THRESH": 1000}
WAYS = ("plugin", "shim")

by_way = pytest.mark.parametrize("way", WAYS)


def name_of(client):
    return f"{client[0]}-{'own' if client[1] else 'plain'}"


def environment(way, *groups):
    return product.environment(**{**SIM, "UCX_PLUGIN_PATH": None, **uct.LOADED[way],
                                  **{k: v for group in groups for k, v in group.items()}})


def expect_clients(result, clients):
    for release in {release for release, _ in clients}:
        expected = sum(release == one for one, _ in clients)
        assert result.count(f"RIGHT client {release}") == expected, result.output
    assert "WRONG" not in result.output and result.lines()[-1] == "DONE", result.output


@pytest.mark.parametrize("reverse", [False, True], ids=["first", "second"])
@pytest.mark.parametrize("clients", CLIENTS, ids=lambda pair: "+".join(map(name_of, pair)))
@pytest.mark.parametrize("settings", [{}, TRANSPORT], ids=["default", "transport"])
@by_way
def test_clients(run, builder, way, settings, clients, reverse):
    libraries = [builder.client(*client) for client in clients]
    if reverse:
        libraries.reverse()
    # Both are there before the first one sends; then one after the other ends.
    steps = [f"{library}:{letter}" for letter in ("o", "r", "r", "c")
             for library in libraries]
    result = run(builder.steps(), *steps, env=environment(way, settings))
    expect_clients(result, [*clients, *clients])
