"""Puts and gets with a layout on each side, by the C API: over each release, between GPUs by one kernel
each, and block by block where UCX takes another transport."""
import re

import pytest

from support import uct

SIM = {"UCX_MEMTYPE_CACHE": "n", "UCX_CUDA_NC_STATS": "y"}
CASES = [(release, way) for release in uct.RELEASE_NAMES for way in uct.ways(release)]
KINDS = {
    "plain": (), "fences": ("--fences",), "outside": ("--outside",), "4 ranks": ("--ranks", 4),
    "long": ("--longest", 300000, "--blocks", 4), "many": ("--longest", 2000, "--blocks", 200),
    "killed": ("--ranks", 3, "--kill"), "freed": ("--freed",),
}
FAULTS = {"launches fail": "launch:2+", "one launch fails": "launch:3", "slow": "slow:50",
          "no tables": "alloc:5+"}


def orders(result):
    """How many operations of each process went from layout to layout."""
    return [int(number) for number in
            re.findall(r"GPU to GPU: .*? lists, (\d+) of them from layout to layout", result.output)]


@pytest.mark.parametrize("release, way", CASES)
def test_releases(run, fetch, build, release, way):
    fetch(release)
    env = uct.environment(uct.LOADED[way], SIM, release=release)
    result = run(build("strided"), "--seed", uct.SEED, env=env)
    assert "RIGHT" in result.output and "illegal access" not in result.output
    assert len(orders(result)) == 2 and min(orders(result)) > 100, result.output


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(1, 21 if uct.FULL else 3))
def test_kinds(run, fetch, build, kind, seed):
    fetch(uct.LAST)
    env = uct.environment(uct.LOADED["plugin"], SIM, release=uct.LAST)
    result = run(build("strided"), "--seed", seed, *KINDS[kind], env=env)
    # A simulated GPU gives freed memory to the next one who asks: puts there hit anything.
    assert "RIGHT" in result.output
    assert kind == "freed" or "illegal access" not in result.output
    assert sum(orders(result)) > 0, result.output
    if kind == "outside":
        assert "a put or get leads out of the memory of its key" in result.output


@pytest.mark.parametrize("kind", ["plain", "long", "freed"])
def test_memory_made_of_pieces(run, fetch, build, kind):
    fetch(uct.LAST)
    env = uct.environment(uct.LOADED["plugin"], SIM, {"UCX_CUDA_NC_SIM_SHARED": "pieces"},
                          release=uct.LAST)
    result = run(build("strided"), "--seed", 11, *KINDS[kind], env=env)
    assert "RIGHT" in result.output
    assert kind == "freed" or "illegal access" not in result.output
    assert sum(orders(result)) > 0, result.output


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(run, fetch, build, fault):
    """What no kernel moves goes by copies."""
    fetch(uct.LAST)
    env = uct.environment(uct.LOADED["plugin"], SIM, {"UCX_CUDA_NC_SIM_FAULTS": FAULTS[fault]},
                          release=uct.LAST)
    result = run(build("strided"), "--seed", 7, env=env)
    assert "RIGHT" in result.output and orders(result), result.output


@pytest.mark.parametrize("kind", ["plain", "fences", "4 ranks"])
def test_left_to_ucx(run, fetch, build, kind):
    """Host memory block by block, over UCX's own transports: slow."""
    fetch(uct.LAST)
    env = uct.environment(uct.LOADED["plugin"], SIM, {"UCX_CUDA_NC_ONE_SIDED": "n"},
                          release=uct.LAST)
    result = run(build("strided"), "--seed", 5, "--memory", "host", "--longest", 1500, "--rounds", 2,
                 *KINDS[kind], env=env)
    assert "RIGHT" in result.output and not orders(result), result.output


@pytest.mark.parametrize("memory", ["sim", "host"])
@pytest.mark.parametrize("way", [(), ("--list",)], ids=["layouts", "lists"])
def test_very_many_blocks(run, fetch, build, way, memory):
    """10^7 with --full: more lists than may be under way. UCX's lists are arrays of 40 bytes a block,
    of the program itself, and UCP keeps 16 more."""
    fetch(uct.LAST)
    blocks = 10 ** 7 if uct.FULL else 10 ** 6
    env = uct.environment(uct.LOADED["plugin"], SIM, release=uct.LAST)
    result = run(build("long_lists"), "--blocks", blocks, "--memory", memory, *way, env=env)
    assert "RIGHT" in result.output and "illegal access" not in result.output
    grown = int(re.search(r"grew (\d+) MiB", result.output)[1])
    assert grown < (130 + 56 * blocks / 2 ** 20 if way else 160 + 64 * blocks / 2 ** 20)
    lists = int(re.search(r"puts and \d+ gets in (\d+) lists", result.output)[1])
    assert lists > blocks / 20000 if way else lists == 3


def test_more_blocks_than_ucx_takes(run, fetch, build):
    """Block by block there is a limit, and a sentence."""
    fetch(uct.LAST)
    env = uct.environment(uct.LOADED["plugin"], SIM, {"UCX_CUDA_NC_ONE_SIDED": "n"},
                          release=uct.LAST)
    result = run(build("long_lists"), "--blocks", 2 << 20, "--memory", "host", "--outside", env=env)
    assert "RIGHT" in result.output and "2^20 common blocks or more" in result.output


@pytest.mark.parametrize("memory", ["sim", "host"])
def test_benchmark(run, build, memory):
    """It checks every byte and gap, and the rows go at once."""
    env = uct.environment(uct.LOADED["plugin"], SIM)
    result = run("mpirun", "-np", 2, build("strided_put"), "--memory", memory, "--repeats", 4,
                 "--largest", 65536, env=env)
    rows = re.findall(r"^ *(\d+) +(\d+) (?: +[\d.]+){7} +0$", result.output, re.M)
    assert len(rows) == 5, result.output
    assert re.search(r", [1-9]\d* of them from layout to layout", result.output), result.output


@pytest.mark.parametrize("memory", ["sim", "host"])
def test_lists_of_ucp(run, build, memory):
    """The benchmark checks every byte and gap of messages, puts and gets."""
    env = uct.environment(uct.LOADED["plugin"], SIM)
    result = run("mpirun", "-np", 2, build("ucp_lists"), "--memory", memory, "--repeats", 4,
                 "64x4096", "300x1000", env=env)
    rows = re.findall(r"^ *\d+ +\d+  (iov|iov, GB/s|put|gets)(?: +[\d.]+){3} +0$", result.output,
                      re.M)
    assert len(rows) == 8 and "wrong bytes: 0" in result.output, result.output
    lists = re.findall(r"to GPU: (\d+) puts and (\d+) gets", result.output)
    assert memory == "host" or any(int(puts) > 1000 and int(gets) > 1000 for puts, gets in lists), \
        result.output
