"""Puts and gets between GPUs and of host memory: by a UCP program over each release, and by the
unmodified wheel of NIXL."""
import re

import pytest

from support import product, uct

SIM = {"UCX_MEMTYPE_CACHE": "n", "UCX_CUDA_NC_STATS": "y"}
# Without headers there is nothing to compile against; UCX keeps what it promised to older programs.
CASES = [(release, way) for release in uct.RELEASE_NAMES for way in uct.ways(release)]
KINDS = {
    "plain": (), "fences": ("--fences",), "outside": ("--outside",), "wakeup": ("--wakeup",),
    "4 ranks": ("--ranks", 4), "long": ("--longest", 300000, "--blocks", 30),
    "short": ("--longest", 16, "--blocks", 3000), "killed": ("--ranks", 3, "--kill"),
    "lists": ("--list",), "fenced lists": ("--list", "--fences"),
    "lists outside": ("--list", "--outside"), "freed": ("--freed", "--rounds", 12),
    "odd": ("--odd",), "odd lists": ("--list", "--odd"),
}
FAULTS = {"launches fail": "launch:2+", "one launch fails": "launch:3", "slow": "slow:50",
          "pinned memory runs out": "pinned:1+", "one pinned allocation fails": "pinned:3",
          "marks fail now and then": "mark:2,mark:5,mark:9"}


def launches(result):
    """[(operations, launches)] of each process that had any."""
    return operations(result, r"GPU to GPU: (\d+) puts and (\d+) gets in (\d+) lists")


def operations(result, pattern):
    found = re.findall(f"One-sided, {pattern}", result.output)
    return [(int(puts) + int(gets), int(number)) for puts, gets, number in found]


@pytest.mark.parametrize("release, way", CASES)
def test_releases(run, fetch, build, release, way):
    fetch(release)
    env = uct.environment(uct.LOADED[way], SIM, release=release)
    result = run(build("one_sided"), "--seed", uct.SEED, env=env)
    assert "RIGHT" in result.output and "illegal access" not in result.output
    assert len(launches(result)) == 2, result.output


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(1, 21 if uct.FULL else 3))
def test_kinds(run, fetch, build, kind, seed):
    fetch(uct.LAST)
    env = uct.environment(uct.LOADED["plugin"], SIM, release=uct.LAST)
    result = run(build("one_sided"), "--seed", seed, *KINDS[kind], env=env)
    assert "RIGHT" in result.output and "illegal access" not in result.output
    assert launches(result), result.output
    if "--outside" in KINDS[kind]:
        assert "a put or get leads out of the memory of its key" in result.output
    if "--freed" in KINDS[kind]:
        assert any(map(int, re.findall(r"the same address (\d+) times", result.output)))


def test_many_go_by_one_launch(run, fetch, build):
    fetch(uct.LAST)
    env = uct.environment(uct.LOADED["plugin"], SIM, release=uct.LAST)
    result = run(build("one_sided"), "--seed", 3, "--list", "--rounds", 4, env=env)
    for operations, number in launches(result):
        assert operations > 50 * number, result.output


@pytest.mark.parametrize("kind", ["plain", "long", "lists", "fences", "killed"])
def test_memory_made_of_pieces(run, fetch, build, kind):
    """Regions of several pieces, as PyTorch's expandable segments are."""
    fetch(uct.LAST)
    env = uct.environment(uct.LOADED["plugin"], SIM, {"UCX_CUDA_NC_SIM_SHARED": "pieces"},
                          release=uct.LAST)
    result = run(build("one_sided"), "--seed", 11, *KINDS[kind], env=env)
    assert "RIGHT" in result.output and "illegal access" not in result.output
    assert launches(result), result.output


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(run, fetch, build, fault):
    """What no kernel moves goes by copies."""
    fetch(uct.LAST)
    env = uct.environment(uct.LOADED["plugin"], SIM, {"UCX_CUDA_NC_SIM_FAULTS": FAULTS[fault]},
                          release=uct.LAST)
    result = run(build("one_sided"), "--seed", 7, env=env)
    assert "RIGHT" in result.output and launches(result)


def test_left_to_ucx(run, fetch, build):
    """UCX without CUDA cannot put into GPU memory itself: the program says so."""
    fetch(uct.LAST)
    env = uct.environment(uct.LOADED["plugin"], SIM, {"UCX_CUDA_NC_ONE_SIDED": "n"},
                          release=uct.LAST)
    assert not launches(run(build("one_sided"), "--rounds", 1, status=None, env=env))


# ---- host memory

ON_HOST = r"host memory: (\d+) puts and (\d+) gets in (\d+) lists"


def run_on_host(run, program, *arguments, release=uct.LAST, way="plugin"):
    env = uct.environment(uct.LOADED[way], SIM, release=release)
    result = run(program, "--memory", "host", *arguments, env=env)
    assert "RIGHT" in result.output
    return result


@pytest.mark.parametrize("release, way", CASES)
def test_releases_in_host_memory(run, fetch, build, release, way):
    fetch(release)
    result = run_on_host(run, build("one_sided"), "--seed", uct.SEED, release=release, way=way)
    for number, lists in operations(result, ON_HOST):
        assert number > 5 * lists, result.output
    assert len(operations(result, ON_HOST)) == 2, result.output


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(21, 31 if uct.FULL else 23))
def test_kinds_in_host_memory(run, fetch, build, kind, seed):
    fetch(uct.LAST)
    result = run_on_host(run, build("one_sided"), "--seed", seed, *KINDS[kind])
    assert operations(result, ON_HOST), result.output
    if "--outside" in KINDS[kind]:
        assert "a put or get leads out of the memory of its key" in result.output


@pytest.mark.parametrize("kind", ["plain", "fences", "outside", "killed"])
def test_layouts_in_host_memory(run, fetch, build, kind):
    """cuda_nc_put_nbx and cuda_nc_get_nbx: a whole operation is one."""
    fetch(uct.LAST)
    result = run_on_host(run, build("strided"), "--seed", 5, *KINDS[kind])
    whole = [int(number) for number in
             re.findall(r"lists, (\d+) of them from layout to layout", result.output)]
    assert whole and all(number > 20 for number in whole), result.output


# ---- atomic operations

@pytest.mark.parametrize("fence", ["auto", "ep_based"])
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("plugin", ["plugin", "none"])
@pytest.mark.parametrize("seed", range(1, 11 if uct.FULL else 3))
def test_atomic_operations_in_host_memory(run, fetch, build, plugin, ranks, seed, fence):
    """They stay UCX's own, and keep their order with our puts and gets as with UCX's."""
    fetch(uct.LAST)
    env = uct.environment(uct.LOADED.get(plugin, {}), SIM, {"UCX_FENCE_MODE": fence},
                          release=uct.LAST)
    result = run(build("atomics"), "--memory", "host", "--ranks", ranks, "--seed", seed, env=env)
    assert "RIGHT" in result.output
    assert len(operations(result, ON_HOST)) == (ranks if plugin == "plugin" else 0)


def test_atomic_operations_on_gpu_memory(run, fetch, build):
    """UCX has none within a machine, and says so; with our keys too."""
    fetch(uct.LAST)
    env = uct.environment(uct.LOADED["plugin"], SIM, release=uct.LAST)
    result = run(build("atomics"), "--rounds", 2, env=env)
    assert "RIGHT" in result.output and launches(result), result.output


# ---- NIXL

def nixl_environment(*groups):
    variables = {"UCX_PLUGIN_PATH": product.PLUGIN, "UCX_CUDA_NC_GPU": "sim",
                 "UCX_CUDA_NC_SIM_DELAY": 20, "LD_LIBRARY_PATH": f"{product.INSTALL}/lib",
                 "PYTHONPATH": str(product.LOCAL / "nixl"), **SIM}
    for group in groups:
        variables.update(group)
    return product.environment(**variables)


@pytest.mark.parametrize("lists", [{}, {"NIXL_UCX_SGL_ENABLE": 1}], ids=["puts", "lists"])
@pytest.mark.parametrize("operation", ["WRITE", "READ"])
@pytest.mark.parametrize("order", ["ascending", "random"])
def test_nixl(run, nixl, operation, order, lists):
    """UCX has no other way into simulated GPU memory: bytes that are right went by lists."""
    result = run(product.VENV / "bin/python3", product.ROOT / "bench/nixl_blocks.py", "--memory",
                 "sim", "--operation", operation, "--order", order, "--repeats", 1, "1024x4096",
                 "300x10001", "1x2000000", env=nixl_environment(lists))
    assert len(re.findall(r"  yes$", result.output, re.M)) == 3, result.output


@pytest.mark.parametrize("lists", [{}, {"NIXL_UCX_SGL_ENABLE": 1}], ids=["puts", "lists"])
@pytest.mark.parametrize("operation, order", [("WRITE", "ascending"), ("WRITE", "random"),
                                              ("READ", "random")])
def test_nixl_in_host_memory(run, nixl, operation, order, lists):
    result = run(product.VENV / "bin/python3", product.ROOT / "bench/nixl_blocks.py", "--memory",
                 "dram", "--operation", operation, "--order", order, "--repeats", 1, "1024x4096",
                 "300x10001", "1x2000000",
                 env=nixl_environment(lists, {"UCX_PROTO_INFO": "y"}))
    assert len(re.findall(r"  yes$", result.output, re.M)) == 3, result.output
    assert re.search(r"\| zero-copy +\| cuda_nc/host +\|", result.output), result.output
