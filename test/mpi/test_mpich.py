"""MPICH, over the UCX that it brings (under the shim) and over UCX 1.22 (by the module). What MPICH
does by itself with GPU memory is its own: only messages are served there."""
import os

import pytest

from support import mpi, product
from support.runner import Runner

LIMIT = mpi.LIMIT
PACKAGE = "mpich==5.0.2"
PREFIX = product.LOCAL / "mpich"
# Its own shared memory would take the messages within a machine.
THROUGH_UCX = {"MPIR_CVAR_NOLOCAL": 1}
OWN_UCX = {"LD_LIBRARY_PATH": f"{PREFIX}/lib:{product.INSTALL}/lib"}
WAYS = {"shim": {**mpi.SHIM, **OWN_UCX},
        "plugin": {**mpi.PLUGIN, "LD_LIBRARY_PATH": f"{product.ucx()}/lib:{PREFIX}/lib:"
                                                    f"{product.INSTALL}/lib"}}
by_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture(scope="session")
def mpich(one_at_a_time):
    """The directory of the test programs, by MPICH's compiler."""
    programs = mpi.WORK / "mpich"
    with one_at_a_time("programs"):
        run = Runner(600, product.LOGS / "mpi" / f"build-mpich-{os.getpid()}.log",
                     product.environment())
        if not (PREFIX / ".complete").exists():
            run(product.PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                "--ignore-installed", "--prefix", PREFIX, PACKAGE)
            (PREFIX / ".complete").touch()
        run("make", "-s", "-j2", "-C", product.ROOT / "test/mpi", "-f", "programs.mk",
            f"MPICXX={PREFIX}/bin/mpicxx", f"OUTPUT={programs}", programs / "random-types",
            programs / "operations-test")
    return programs


def job(run, way, ranks, *command, **options):
    env = mpi.environment(THROUGH_UCX, WAYS[way], {"UCX_CUDA_NC_STATS": "y"})
    return run(PREFIX / "bin/mpiexec", "-n", ranks, *command, env=env, **options)


@pytest.mark.parametrize("memory", ["host", "sim", "sim,host"])
@by_way
def test_random_types(run, mpich, way, memory):
    """Negative extents included, over which MPICH itself stumbles."""
    result = job(run, way, 2, mpich / "random-types", "--types", mpi.TYPES, "--seed", mpi.SEED,
                 "--memory", memory)
    assert "host engine" in result.output or "GPU" in result.output
    assert " original (layout" not in result.output


@pytest.mark.parametrize("kind, ranks", [("pair", 2), ("collective", 3), ("threads", 2)])
@by_way
def test_operations(run, mpich, way, kind, ranks):
    result = job(run, way, ranks, mpich / "operations-test", "--memory", "host", "--kind", kind)
    assert "END" in result.lines() and "FAIL" not in result.output
