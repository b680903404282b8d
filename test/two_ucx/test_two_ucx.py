"""Two copies of UCX in a process: libraries bring their own, and a process may load several of them.
Each copy gets the calls of those that use it, in whatever order they are loaded, and however the
product is."""
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
    ((uct.LAST, None), (uct.LAST, MANGLED)),
]
# Beside Open MPI, which uses UCX 1.22.
BESIDE_MPI = [("1.19.0", MANGLED), ("1.21.0", RENAMED), (uct.LAST, RENAMED)]
SIM = {"UCX_CUDA_NC_GPU": "sim", "UCX_CUDA_NC_SIM_DELAY": 20, "UCX_WARN_UNUSED_ENV_VARS": "n",
       "UCX_CUDA_NC_TRANSPORT": "n"}
TRANSPORT = {"UCX_CUDA_NC_TRANSPORT": "y", "UCX_TLS": "cuda_nc,posix,self",
             "UCX_CUDA_NC_DIRECT_THRESH": 1, "UCX_RNDV_THRESH": 1000}
# As it is where nothing is set.
DEFAULT = {"UCX_CUDA_NC_TRANSPORT": "auto"}
STATS = {"UCX_CUDA_NC_STATS": "y"}
WAYS = ("plugin", "shim")

by_way = pytest.mark.parametrize("way", WAYS)


def name_of(client):
    names = {None: "plain", MANGLED: "mangled", RENAMED: "own"}
    return f"{client[0]}-{names[client[1]]}"


def environment(way, *groups):
    return product.environment(**{**SIM, "UCX_PLUGIN_PATH": None, **uct.LOADED[way],
                                  **{k: v for group in groups for k, v in group.items()}})


def expect_clients(result, runs):
    """`runs`: how often a client of each release ran."""
    for release, number in runs.items():
        assert result.count(f"RIGHT client {release}") == number, result.output
    assert "WRONG" not in result.output, result.output


@pytest.mark.parametrize("reverse", [False, True], ids=["first", "second"])
@pytest.mark.parametrize("clients", CLIENTS, ids=lambda pair: "+".join(map(name_of, pair)))
@pytest.mark.parametrize("settings", [{}, TRANSPORT, DEFAULT], ids=["none", "transport", "default"])
@by_way
def test_clients(run, builder, way, settings, clients, reverse):
    libraries = [builder.client(*client) for client in clients]
    if reverse:
        libraries.reverse()
    # Both are there before the first one sends; then one after the other ends.
    steps = [f"{library}:{letter}" for letter in "orrc" for library in libraries]
    result = run(builder.steps(), *steps, env=environment(way, settings, STATS))
    expect_clients(result, {release: 2 * sum(release == one for one, _ in clients)
                            for release, _ in clients})
    assert "DONE" in result.lines()
    if settings is TRANSPORT:
        # UCX before 1.22 loads no module; the shim serves them all.
        served = sum(way == "shim" or release == uct.LAST for release, naming in clients)
        assert result.count(f"GPU to GPU: sent {2 * served} by pull") == 1, result.output


@pytest.mark.parametrize("clients", CLIENTS, ids=lambda pair: "+".join(map(name_of, pair)))
@by_way
def test_calls_that_do_not_show_whose_they_are(run, builder, way, clients):
    """A function that ends with a call of UCP leaves by a jump: the call seems to come from the
    program, which uses no UCX. The worker or the endpoint tells."""
    libraries = [builder.client(*client) for client in clients]
    steps = [f"{library}:{letter}" for letter in "ojjc" for library in libraries]
    result = run(builder.steps(), *steps, env=environment(way))
    assert result.count("RIGHT passed on") == 4, result.output
    assert "DONE" in result.lines()


# "c": the client, "m": MPI; then what they do: open, run, close.
ORDERS = {
    "client-first": "co mo cr mr cr mr mc cc",
    "mpi-first": "mo co mr cr mr cr cc mc",
    "client-before-mpi": "co cr cc mo mr mc",
    "client-within-mpi": "mo co cr cc mr mc",
}


@pytest.mark.parametrize("settings", [{}, DEFAULT], ids=["none", "default"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("client", BESIDE_MPI, ids=name_of)
@by_way
def test_beside_mpi(run, builder, way, client, order, settings):
    libraries = {"c": builder.client(*client), "m": builder.mpi_part()}
    steps = [f"{libraries[step[0]]}:{step[1]}" for step in ORDERS[order].split()]
    result = run("mpirun", "-np", 2, builder.steps(), *steps,
                 env=mpi.environment(uct.LOADED[way], SIM, settings, STATS))
    expect_clients(result, {client[0]: 2 * ORDERS[order].count("cr")})
    assert result.count("RIGHT mpi") == 2 * ORDERS[order].count("mr"), result.output
    assert result.count("DONE") == 2, result.output
    # MPI's datatypes are served.
    assert re.search("strided.*host engine", result.output), result.output
    assert re.search("strided.*GPU", result.output), result.output


def test_disabled(run, builder):
    """The shim alone finds the originals where the product serves nothing."""
    steps = [f"{builder.client(*client)}:{letter}" for letter in "orc" for client in CLIENTS[0]]
    result = run(builder.steps(), *steps, env=environment("shim", {"UCX_CUDA_NC_ENABLE": "n"}))
    expect_clients(result, {"1.19.0": 1, uct.LAST: 1})


def test_later_members(run, builder):
    """A UCX that calls itself 1.22 and has functions of members that later releases append to its
    tables: the transport stays away from it with one warning."""
    env = environment("shim", TRANSPORT, {"LD_LIBRARY_PATH": builder.later_ucx()})
    result = run(product.ucx() / "bin/ucx_info", "-d", env=env, status=None)
    assert "Transport: cuda_nc" not in result.output
    assert result.count("or has those of a later one") == 1, result.output
