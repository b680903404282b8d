"""The programs of the MPI tests, by each MPI's compiler."""
import os

import pytest

from support import mpi, product
from support.runner import Runner


def _build(one_at_a_time, release, compiler):
    programs = mpi.WORK / str(release)
    with one_at_a_time("programs"):
        run = Runner(600, product.LOGS / "mpi" / f"build-{release}-{os.getpid()}.log",
                     product.environment())
        run("make", "-s", "-C", product.ROOT / "bench", "-f", "mpi_layouts.mk",
            f"MPICXX={compiler}", f"OUTPUT={mpi.WORK}/mpi_layouts-{release}")
        run("make", "-s", "-j2", "-C", product.ROOT / "test/mpi", "-f", "programs.mk",
            f"MPICXX={compiler}", f"OUTPUT={programs}", "all", programs / "c-api",
            f"PRODUCT={mpi.C_API}")
        if release == 4:
            run("make", "-s", "-C", product.BUILD, "nc_perftest_mpi-4", "MPI_SUFFIX=-4",
                f"MPICXX={compiler}")
    return programs


@pytest.fixture(scope="session")
def openmpi5(one_at_a_time):
    mpi.WORK.mkdir(parents=True, exist_ok=True)
    return _build(one_at_a_time, 5, "mpicxx")


@pytest.fixture(scope="session")
def openmpi4(one_at_a_time):
    if not mpi.have_openmpi4():
        pytest.skip("no system Open MPI 4 is installed")
    mpi.WORK.mkdir(parents=True, exist_ok=True)
    return _build(one_at_a_time, 4, "mpicxx.openmpi")


class Job:
    """Runs programs under one configuration."""

    def __init__(self, name, programs, run):
        self.name = name
        self.configuration = mpi.CONFIGURATIONS[name]
        self.programs = programs
        self._run = run

    def __call__(self, ranks, *command, env=(), **options):
        return self._run(self.configuration.mpirun, "-np", ranks, *command,
                         env=mpi.environment(self.configuration.variables, *env), **options)


@pytest.fixture
def job(request, run, config):
    release = mpi.CONFIGURATIONS[config].mpi
    return Job(config, request.getfixturevalue(f"openmpi{release}"), run)
