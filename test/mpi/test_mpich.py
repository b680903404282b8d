"""MPICH, over the UCX that it brings (under the shim) and over UCX 1.22 (by the module). What it does
by itself in host memory is its own."""
import ctypes
import json
import os
import re
import sys

import pytest

from support import mpi, product
from support.runner import Runner

LIMIT = mpi.LIMIT
PREFIX = product.LOCAL / "mpich"
# Its own shared memory would take the messages within a machine.
THROUGH_UCX = {"MPIR_CVAR_NOLOCAL": 1}
# Other releases, with --full. 4.1.3 of PyPI prefers libfabric.
OLDER = ("4.1.3", "4.3.2")
OVER_UCX = {"MPIR_CVAR_CH4_NETMOD": "ucx"}


def ways_of(prefix):
    own_ucx = {"LD_LIBRARY_PATH": f"{prefix}/lib:{product.INSTALL}/lib"}
    plugin = {**mpi.PLUGIN,
              "LD_LIBRARY_PATH": f"{product.ucx()}/lib:{prefix}/lib:{product.INSTALL}/lib"}
    return {"shim": {**mpi.SHIM, **own_ucx}, "plugin": plugin,
            "transport": {**plugin, **mpi.TRANSPORT}}


WAYS = ways_of(PREFIX)
by_way = pytest.mark.parametrize("way", WAYS)
# The ranks on two simulated GPUs by turns, or all on the first.
EACH_RANK = ("bash", "-c", 'UCX_CUDA_NC_SIM_DEVICE=$((PMI_RANK % 2)) exec "$@"', "-")
GPUS = {2: EACH_RANK, 1: ()}


def build(one_at_a_time, prefix, names, *release):
    """The directory of the test programs, by that MPICH's compiler."""
    programs = mpi.WORK / prefix.name
    with one_at_a_time("programs"):
        run = Runner(600, product.LOGS / "mpi" / f"build-{prefix.name}-{os.getpid()}.log",
                     product.environment())
        run("bash", "-ec", '. "$0/contrib/lib.sh" && need_mpich "$@"', product.ROOT, *release)
        run("make", "-s", "-j2", "-C", product.ROOT / "test/mpi", "-f", "programs.mk",
            f"MPICXX={prefix}/bin/mpicxx", f"OUTPUT={programs}",
            *[programs / name for name in names], f"PRODUCT={mpi.C_API}")
    return programs


@pytest.fixture(scope="session")
def mpich(one_at_a_time):
    return build(one_at_a_time, PREFIX, ("random-types", "operations-test", "local-work", "c-api",
                                         "guards-test", "windows-test"))


@pytest.fixture(scope="session", params=OLDER)
def older(request, one_at_a_time):
    """An older release: where it is, its programs."""
    prefix = product.LOCAL / f"mpich-{request.param}"
    return prefix, build(one_at_a_time, prefix, ("random-types", "operations-test", "local-work"),
                         request.param)


def test_env(run, mpich):
    """A shell after env.sh, told to use MPICH: what it compiles is served."""
    env = {**os.environ, "CUDA_NC_QUIET": "1", "CUDA_NC_LOCAL": str(product.LOCAL),
           "UCX_CUDA_NC_STATS": "y", "UCX_CUDA_NC_GPU": "sim"}
    script = '. "$0/contrib/env.sh" mpich && mpicxx -show && mpiexec -n 2 "$1" --types 200 --seed 1'
    result = run("bash", "-ec", script, product.ROOT, mpich / "random-types", env=env)
    assert f"-L{PREFIX}/lib" in result.output and "host engine" in result.output
    script = '. "$0/contrib/env.sh" mpich && nc_info && MPIR_CVAR_NOLOCAL=0 nc_info ' \
             '&& MPIR_CVAR_NOLOCAL=off nc_info'
    said = run("bash", "-ec", script, product.ROOT, env=env).output
    assert re.findall(r"^MPI +MPICH 5.*\n.*served(; messages within a machine)?", said, re.M) == [
        "", "; messages within a machine", "; messages within a machine"], said
    script = 'CUDA_NC_MPI=mpich; . "$0/contrib/env.sh"; command -v mpiexec'
    assert run("bash", "-ec", script, product.ROOT, env=env).output.strip() == str(
        PREFIX / "bin/mpiexec")


def job(run, way, ranks, *command, more=(), gpus=2, prefix=PREFIX, **options):
    env = mpi.environment(THROUGH_UCX, ways_of(prefix)[way], {"UCX_CUDA_NC_STATS": "y"},
                          dict(more))
    return run(prefix / "bin/mpiexec", "-n", ranks, *GPUS[gpus], *command, env=env, **options)


@pytest.mark.parametrize("memory", ["host", "sim", "sim,host"])
@by_way
def test_random_types(run, mpich, way, memory):
    """Negative extents included, over which MPICH itself stumbles."""
    result = job(run, way, 2, mpich / "random-types", "--types", mpi.TYPES, "--seed", mpi.SEED,
                 "--memory", memory)
    assert "host engine" in result.output or "GPU" in result.output
    assert " original (layout" not in result.output


@pytest.mark.parametrize("number", range(mpi.JOBS))
@pytest.mark.parametrize("memory", ["host", "sim"])
@pytest.mark.parametrize("way", ["plugin", "transport"])
def test_many_random_types(run, mpich, way, memory, number):
    """By the module alone, and as by default."""
    seed = mpi.SEED + {"plugin": 2000, "transport": 3000}[way] + number
    job(run, way, 2, mpich / "random-types", *mpi.SMALL, "--seed", seed, "--memory", memory)


@by_way
def test_random_types_on_one_gpu(run, mpich, way):
    job(run, way, 2, mpich / "random-types", "--types", mpi.TYPES // 2, "--seed", mpi.SEED + 1,
        "--memory", "sim", gpus=1)


@pytest.mark.parametrize("memory", ["host", "sim"])
@by_way
def test_sends_before_receives(run, mpich, way, memory):
    """MPICH does not tell UCX that MPI_Send should not wait: we do."""
    result = job(run, way, 2, mpich / "guards-test", "early-sends", "--count", 20, "--memory",
                 memory)
    assert result.output.count(": wrong 0.000") == 2


@by_way
def test_random_types_packed(run, mpich, way):
    """Packed, buffered and copied instead of sent."""
    job(run, way, 2, mpich / "random-types", "--local", "--types", mpi.TYPES // 2, "--seed",
        mpi.SEED, "--memory", "sim")


@pytest.mark.parametrize("kind, ranks", [("pair", 2), ("collective", 3), ("collective", 4),
                                         ("threads", 2)])
@pytest.mark.parametrize("way, memory, gpus", [
    ("transport", "sim", 2), ("transport", "sim", 1), ("transport", "sim,host", 2),
    ("plugin", "host", 2), ("plugin", "sim", 2), ("plugin", "sim,host", 2), ("shim", "host", 2),
    ("shim", "sim", 2)])
def test_operations(run, mpich, way, memory, gpus, kind, ranks):
    result = job(run, way, ranks, mpich / "operations-test", "--memory", memory, "--kind", kind,
                 gpus=gpus)
    assert "END" in result.lines() and "FAIL" not in result.output
    if (way, memory, kind) == ("transport", "sim", "pair"):
        assert re.search(r"GPU to GPU: sent .*[1-9][0-9]* by pull, .*received", result.output)


@by_way
def test_operations_by_mpich_itself(run, mpich, way):
    """Of types that are left to MPICH: it unpacks messages only as a whole."""
    result = job(run, way, 2, mpich / "operations-test", "--memory", "host", "--kind", "pair",
                 more={"UCX_CUDA_NC_HOST_ENGINE": "never"})
    assert "END" in result.lines() and "FAIL" not in result.output
    assert " original (HOST_ENGINE=never" in result.output


@pytest.mark.parametrize("memory, gpus", [("host", 2), ("sim", 2), ("sim", 1), ("sim,host", 2)])
def test_contiguous_on_one_side(run, mpich, memory, gpus):
    result = job(run, "transport", 2, mpich / "operations-test", "--memory", memory, "--kind",
                 "sides", more=mpi.ALL_DIRECT, gpus=gpus)
    assert "END" in result.lines() and "FAIL" not in result.output
    assert memory != "sim" or mpi.sides_counted(result.output)


@pytest.mark.parametrize("way, memory, ranks, gpus", [
    ("transport", "sim", 4, 2), ("transport", "sim,host", 2, 2), ("plugin", "sim", 1, 2),
    ("plugin", "sim", 4, 2), ("plugin", "sim", 2, 1), ("plugin", "sim,host", 3, 2),
    ("shim", "sim", 3, 2), ("shim", "sim,host", 2, 2)])
def test_local_work(run, mpich, way, memory, ranks, gpus):
    """Packs, messages to oneself, collectives and reductions, each in a random form."""
    number = 100 * list(WAYS).index(way) + 10 * ("," in memory) + ranks
    result = job(run, way, ranks, mpich / "local-work", "--memory", memory, "--rounds",
                 mpi.TYPES // 3, "--seed", mpi.SEED + number, gpus=gpus)
    assert "PASS local_work" in result.output


@pytest.mark.parametrize("way, memory, ranks, gpus", [
    ("transport", "sim", 3, 2), ("transport", "sim,host", 2, 2), ("plugin", "sim", 3, 1),
    ("shim", "sim", 2, 2)])
def test_long_local_work(run, mpich, way, memory, ranks, gpus):
    """By pinned memory, or within a GPU."""
    result = job(run, way, ranks, mpich / "local-work", "--memory", memory, "--rounds",
                 mpi.TYPES // 5, "--bytes", 128 << 10, "--seed", mpi.SEED + ranks, gpus=gpus)
    assert "PASS local_work" in result.output
    assert "packed bytes in pinned memory" in result.output
    assert "packed bytes on the same GPU" in result.output


def test_messages_that_replace_what_they_send(run, mpich):
    """From GPU to GPU."""
    result = job(run, "transport", 2, mpich / "local-work", "--memory", "sim", "--only", "replace",
                 "--rounds", mpi.TYPES // 10, "--bytes", 128 << 10, "--seed", mpi.SEED)
    assert "PASS local_work" in result.output
    assert len(re.findall(r"GPU to GPU: sent .*[1-9][0-9]* by pull, .*received",
                          result.output)) == 2


@pytest.mark.parametrize("ranks, gpus", [(2, 2), (3, 2), (4, 1), (5, 2)])
def test_long_broadcasts(run, mpich, ranks, gpus):
    """From GPU to GPU, where UCX is not given memory that it cannot touch."""
    result = job(run, "transport", ranks, mpich / "local-work", "--memory", "sim", "--only",
                 "broadcast", "--rounds", mpi.TYPES // 40, "--seed", mpi.SEED, gpus=gpus,
                 more={**mpi.ALL_DIRECT, "UCX_CUDA_NC_CONTIGUOUS": "y"})
    assert "PASS local_work" in result.output
    assert "packed bytes on the same GPU" in result.output
    assert re.search(r"GPU to GPU: sent .*[1-9][0-9]* (?:by|straight)", result.output)


@pytest.mark.parametrize("way", ["stock", *WAYS])
def test_windows(run, mpich, way):
    """In host memory: MPICH sends what is put or gotten as messages of its own, by its own copies."""
    program = (mpich / "windows-test", "--seed", mpi.SEED, "--rounds", 10 if mpi.FULL else 2)
    if way == "stock":
        result = run(PREFIX / "bin/mpiexec", "-n", 3, *program, env=mpi.environment(THROUGH_UCX))
    else:
        result = job(run, way, 3, *program)
    assert "RIGHT" in result.lines()


@by_way
def test_benchmark(run, mpich, one_at_a_time, way):
    """It compares every byte."""
    program = mpi.WORK / "mpi_local-mpich"
    with one_at_a_time("programs"):
        run("make", "-s", "-C", product.ROOT / "bench", "-f", "mpi_local.mk",
            f"MPICXX={PREFIX}/bin/mpicxx", f"OUTPUT={program}", env=product.environment())
    result = job(run, way, 2, program, "--memory", "sim", "--bytes", 256 << 10, "--repeats", 2)
    assert "mpi wrong bytes: 0" in result.output


@pytest.fixture(scope="session")
def perftest(mpich, one_at_a_time):
    """nc_perftest mpi by MPICH's compiler."""
    with one_at_a_time("programs"):
        run = Runner(600, product.LOGS / "mpi" / f"build-perftest-mpich-{os.getpid()}.log",
                     product.environment())
        run("make", "-s", "-C", product.BUILD, "nc_perftest_mpi-mpich", "MPI_SUFFIX=-mpich",
            f"MPICXX={PREFIX}/bin/mpicxx")
    return product.BUILD / "nc_perftest_mpi-mpich"


@pytest.mark.parametrize("way, memory, ranks, by", [
    ("shim", "host", 3, "isend,persistent,alltoallw,neighbor"),
    ("plugin", "host", 2, "isend,persistent,alltoallw,neighbor"),
    ("plugin", "gpu", 3, "isend,alltoallw,neighbor"),
    ("transport", "gpu", 2, "isend,alltoallw,neighbor"),
    # No rank is its own neighbour: persistent messages to oneself are MPICH's own.
    ("transport", "gpu", 8, "persistent")])
def test_halos(run, perftest, tmp_path, way, memory, ranks, by):
    """Repeated edges of the graph are matched in order by MPICH too."""
    output = tmp_path / "halos.json"
    job(run, way, ranks, perftest, "-m", memory, "-t", "halo6,halo26", "--box", 8, "--halo", 2,
        "--by", by, "--seconds", 0.01, "--json", output)
    rows = json.loads(output.read_text())["rows"]
    assert len(rows) == 2 * len(by.split(",")) and all(row["verified"] for row in rows)


@by_way
def test_local_work_by_threads(run, mpich, way):
    job(run, way, 2, mpich / "local-work", "--memory", "sim", "--threads", 3, "--rounds",
        mpi.TYPES // 10, "--seed", mpi.SEED)


@by_way
def test_local_work_without_pinned_memory(run, mpich, way):
    env = {"UCX_CUDA_NC_SIM_FAULTS": "pinned:1+,launch:50+"}
    job(run, way, 2, mpich / "local-work", "--memory", "sim", "--rounds", 200, "--seed", mpi.SEED,
        more=env)


@by_way
def test_layouts_of_the_c_api(run, mpich, way):
    result = job(run, way, 1, mpich / "c-api", "--types", mpi.TYPES, "--seed", mpi.SEED)
    assert "PASS c_api" in result.output


def test_local_work_of_the_application(run, mpich):
    """Without a GPU, or switched off, calls go to MPICH alone."""
    for env in ({"UCX_CUDA_NC_GPU": "none"}, {"UCX_CUDA_NC_ENABLE": "n"}):
        for way in WAYS:
            result = job(run, way, 2, mpich / "local-work", "--memory", "host", "--rounds", 100,
                         more=env)
            assert "PASS local_work" in result.output


if mpi.FULL:
    @by_way
    def test_older_release(run, older, way):
        prefix, programs = older
        for memory in ("host", "sim"):
            for kind, ranks in (("pair", 2), ("collective", 3)):
                result = job(run, way, ranks, programs / "operations-test", "--memory", memory,
                             "--kind", kind, prefix=prefix, more=OVER_UCX)
                assert "END" in result.lines() and "FAIL" not in result.output
            result = job(run, way, 2, programs / "random-types", "--types", mpi.TYPES // 2,
                         "--seed", mpi.SEED, "--memory", memory, prefix=prefix, more=OVER_UCX)
            assert "host engine" in result.output or "GPU" in result.output
        for size in (4 << 10, 128 << 10):
            result = job(run, way, 3, programs / "local-work", "--memory", "sim", "--rounds",
                         mpi.TYPES // 10, "--bytes", size, "--seed", mpi.SEED, prefix=prefix,
                         more=OVER_UCX)
            assert "PASS local_work" in result.output


@pytest.fixture(scope="session")
def callers(mpich, tmp_path_factory):
    """The directory of what operations/mpich makes: of this process, as others run theirs."""
    source = product.ROOT / "test/mpi/operations/mpich"
    made = tmp_path_factory.mktemp("mpich-callers")
    flags = ("-O1", "-g", "-Wall", "-Wextra", "-Wshadow", "-Werror", f"-I{product.ROOT}/test/mpi")
    run = Runner(600, product.LOGS / "mpi" / f"build-callers-{os.getpid()}.log",
                 product.environment())
    run(PREFIX / "bin/mpicxx", "-std=c++17", *flags, source / "requests.cc", "-o",
        made / "requests", "-ldl", "-lpthread")
    run(PREFIX / "bin/mpicxx", "-std=c++17", *flags, "-shared", "-fPIC", source / "user.cc", "-o",
        made / "libuser.so", "-ldl")
    run(PREFIX / "bin/mpicc", *flags, "-shared", "-fPIC", source / "tool.c", "-o",
        made / "libtool.so")
    return made


@pytest.mark.parametrize("kind, ranks", [("freed", 1), ("freed", 2), ("status", 2),
                                         ("status_by_threads", 1), ("status_by_threads", 2),
                                         ("status_beside_wait", 1), ("status_beside_wait", 2),
                                         ("failed_send", 1), ("failed_receive", 2)])
@pytest.mark.parametrize("way", ["shim", "plugin"])
def test_requests(run, callers, way, kind, ranks):
    """Freed, asked for, and of calls that fail."""
    result = job(run, way, ranks, callers / "requests", kind)
    assert f"PASS {kind}" in result.output and "FAIL" not in result.output


BYPASS = "MPICH moves messages within this machine by its own shared memory"


@pytest.mark.parametrize("way", ["shim", "transport"])
def test_says_that_messages_pass_it_by(run, mpich, way, tmp_path):
    """Once in a process, where GPU memory is used beside another rank and MPICH's own shared memory
    is on."""
    own_memory = {"MPIR_CVAR_NOLOCAL": 0}
    packs = (mpich / "local-work", "--memory", "sim", "--rounds", 40, "--only", "pack")
    assert job(run, way, 2, *packs, more=own_memory).output.count(BYPASS) == 2
    assert BYPASS not in job(run, way, 1, *packs, more=own_memory).output
    assert BYPASS not in job(run, way, 2, *packs).output
    messages = (mpich / "operations-test", "--kind", "pair", "--memory")
    assert BYPASS not in job(run, way, 2, *messages, "host", more=own_memory).output
    # MPICH touches the memory, and crashes; its launcher may lose what a rank has said last.
    to_files = {"UCX_LOG_FILE": tmp_path / "%p"}
    job(run, way, 2, *messages, "sim", more={**own_memory, **to_files}, status=None)
    assert any(BYPASS in file.read_text() for file in tmp_path.iterdir())


def beside_tool(callers, way):
    shim = WAYS[way].get("LD_PRELOAD")
    return {"LD_PRELOAD": f"{shim or ''} {callers / 'libtool.so'}"}


@pytest.mark.parametrize("way", ["shim", "plugin"])
def test_a_tool_sees_messages(run, callers, way):
    """Those in host memory."""
    result = job(run, way, 1, callers / "requests", "freed", more=beside_tool(callers, way))
    assert "PASS freed" in result.output and "TOOL 1 sends, 4 receives" in result.output


@pytest.mark.parametrize("way", ["shim", "plugin"])
def test_thread_that_ends_in_a_call(run, callers, way):
    result = job(run, way, 1, callers / "requests", "cancelled_thread",
                 more=beside_tool(callers, way))
    assert "PASS cancelled_thread" in result.output


@pytest.mark.parametrize("way", ["shim", "plugin"])
def test_loaded_after_ucx(run, callers, way):
    """By a program that uses UCX itself before."""
    ucx = PREFIX / "lib/mpich" if way == "shim" else product.ucx() / "lib"
    env = mpi.environment(THROUGH_UCX, WAYS[way])
    result = run(sys.executable, product.ROOT / "test/mpi/operations/mpich/late.py",
                 ucx / "libucp.so.0", PREFIX / "lib/libmpi.so.12", callers / "libuser.so", env=env)
    assert "PASS late" in result.output


def test_shim_defines_what_every_mpi_has():
    """Programs call what they find, and some MPIs lack these."""
    shim = ctypes.CDLL(str(product.SHIM))
    assert hasattr(shim, "MPI_Sendrecv")
    for name in ("MPI_Isendrecv", "MPI_Isendrecv_replace", "MPI_Send_c"):
        assert not hasattr(shim, name)
