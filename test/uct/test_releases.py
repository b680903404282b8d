"""The transport cuda_nc through each UCX release that it serves."""
import itertools
import os

import pytest

from support import product, uct

LIMIT = uct.LIMIT
CARRIERS = ("posix", "tcp")
CASES = [(release, way) for release in uct.RELEASE_NAMES for way in uct.ways(release)]
CARRIED = [(*case, carrier) for case in CASES for carrier in CARRIERS]
# Without tools, headers and debug information: its tables show in how messages go.
BUNDLED_CASES = [(uct.BUNDLED, way) for way in uct.ways(uct.BUNDLED)]
ALL_CARRIED = CARRIED + [(*case, carrier) for case in BUNDLED_CASES for carrier in CARRIERS]
PERFTESTS = [("tag_lat", 8), ("tag_bw", 1000000), ("ucp_put_bw", 5000), ("ucp_get", 5000),
             ("ucp_am_bw", 70000), ("stream_bw", 3000)]
# Variables and arguments of the matrix; each run has a seed of its own.
MATRICES = {
    "": ({}, ()),
    "small-": (uct.SMALL, ("--largest", 3000)),
    "small-peer-errors-": ({**uct.SMALL, "UCX_POSIX_ERROR_HANDLING": "y"},
                           ("--largest", 20000, "--peer-errors")),
}
SEEDS = {key: uct.SEED + number
         for number, key in enumerate(itertools.product(ALL_CARRIED, MATRICES), 1)}

by_release = pytest.mark.parametrize("release", uct.RELEASE_NAMES)
by_case = pytest.mark.parametrize("release, way", CASES)
by_carrier = pytest.mark.parametrize("case", CARRIED, ids="-".join)
by_any_carrier = pytest.mark.parametrize("case", ALL_CARRIED, ids="-".join)


def carried(case, *groups):
    release, way, carrier = case
    return uct.environment(uct.LOADED[way], {"UCX_TLS": "cuda_nc,self",
                                             "UCX_CUDA_NC_CARRIERS": carrier}, *groups,
                           release=release)


def pulls(case):
    """One of the carriers without pulls."""
    return {"UCX_CUDA_NC_PULL_MAX": "0" if case[2] == "tcp" else "64M"}


@pytest.mark.parametrize("name", uct.PROGRAMS)
def test_build(build, name):
    assert build(name).exists()


@by_release
def test_tables(run, fetch, release, tmp_path):
    ucx = fetch(release)
    env = uct.environment()
    run(os.environ.get("CXX", "g++"), "-std=c++17", "-g", "-fno-eliminate-unused-debug-types",
        f"-I{product.ROOT}/src", "-isystem", ucx / "include", "-c",
        product.ROOT / "test/abi/mirror.cc", "-o", tmp_path / "mirror.o", env=env)
    run(product.PYTHON, product.ROOT / "test/abi/check_abi.py", tmp_path / "mirror.o", release,
        ucx / "lib/libuct.so.0", env=env)


@by_case
def test_listed(run, fetch, release, way):
    """It is listed where UCX_TLS names it, over both carriers, and nowhere else; no release is
    warned of."""
    fetch(release)

    def transports(**variables):
        result = run("ucx_info", "-d", env=uct.environment(uct.LOADED[way], variables,
                                                           release=release), status=None)
        return result, sum(line.endswith("Transport: cuda_nc") for line in result.lines())

    result, number = transports(UCX_TLS="cuda_nc,self")
    assert number >= 2
    for carrier in CARRIERS:
        assert any(line.endswith(f"Component: cuda_nc_{carrier}") for line in result.lines())
    assert "WARN" not in result.output
    assert transports()[1] == number, "by default, because the process has a (simulated) GPU"
    assert "cuda_nc" not in transports(UCX_CUDA_NC_GPU="none")[0].output
    assert "cuda_nc" not in transports(UCX_TLS="^cuda_nc")[0].output
    assert "cuda_nc" not in transports(UCX_TLS="posix,self")[0].output
    result, number = transports(UCX_TLS="all", UCX_CUDA_NC_TRANSPORT="y", UCX_CUDA_NC_ONE_SIDED="n",
                                UCX_CUDA_NC_CARRIERS="sysv")
    assert number == 1
    assert "cuda_nc" not in transports(UCX_TLS="cuda_nc", UCX_CUDA_NC_TRANSPORT="n")[0].output


@by_case
def test_allocations(run, fetch, release, way):
    """UCX is asked once to tell of allocations of GPU memory, by which a GPU is prepared, and not
    where the user has turned its hooks off."""
    fetch(release)

    def lines(**variables):
        result = run("ucx_perftest", "-l", "-t", "tag_lat", "-n", 10, "-w", 1,
                     env=uct.environment(uct.LOADED[way], variables,
                                         {"UCX_TLS": "cuda_nc,self", "UCX_LOG_LEVEL": "debug"},
                                         release=release))
        return [line for line in result.lines() if "allocations of GPU memory" in line]

    for off, words in ((None, "UCX tells of"), ("UCX_MEM_EVENTS", "UCX does not tell of")):
        (line,) = lines(**{off: "n"} if off else {})
        assert words in line
    assert not lines(UCX_MEMTYPE_CACHE="n")


@pytest.mark.parametrize("tls", ["cuda_nc,self", "cuda_nc,cma,self"])
@pytest.mark.parametrize("release, way", CASES + BUNDLED_CASES)
def test_knows_requests(run, fetch, build, release, way, tls):
    fetch(release)
    env = uct.environment(uct.LOADED[way], {"UCX_TLS": tls}, uct.SMALL, release=release)
    uct.run_knowing_requests(run, build("matrix"), env, "--largest", 3000)


@pytest.mark.parametrize("test, size", PERFTESTS)
@by_carrier
def test_ucx_perftest(run, fetch, case, test, size):
    fetch(case[0])
    # Without the transport self: to itself through the carrier.
    run("ucx_perftest", "-l", "-t", test, "-s", size, "-n", 200, "-w", 10,
        env=carried(case, {"UCX_TLS": "cuda_nc"}))


@pytest.mark.parametrize("matrix", MATRICES)
@by_any_carrier
def test_matrix(run, fetch, build, case, matrix):
    fetch(case[0])
    variables, arguments = MATRICES[matrix]
    uct.run_matrix(run, build("matrix"), carried(case, pulls(case), uct.DIRECT, variables),
                   SEEDS[case, matrix], arguments)


@by_any_carrier
def test_random_types(run, fetch, build, case):
    fetch(case[0])
    rank = ("-np", 1, build("random_types"), "--types", uct.TYPES, "--seed", uct.SEED, "--memory",
            "sim,host")
    second = ("-np", 1, "env", "UCX_CUDA_NC_SIM_DEVICE=1", *rank[2:])
    # Variables of mpirun itself are those of its ranks, too; the product gets into these alone.
    loaded = [f"{name}={value}" for name, value in
              {**uct.LOADED[case[1]], "UCX_TLS": "cuda_nc,self", "UCX_CUDA_NC_CARRIERS": case[2],
               **pulls(case)}.items()]
    run("mpirun", *rank[:2], "env", *loaded, *rank[2:], ":", *second[:3], *loaded, *second[3:],
        env=uct.environment(release=case[0]))
