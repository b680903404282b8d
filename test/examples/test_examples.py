"""Builds each program of examples/ against the installed product, runs it, and reads its result.

The product is the one in $CUDA_NC_LOCAL/install (default: .local/install of this checkout).
"""
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = "mpi_vector", "halo", "ucp_layout", "shmem_put", "paged_cache"
BUILD_SECONDS = 120
RUN_SECONDS = 120  # an exchange takes milliseconds; a loaded machine starts ranks slowly

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make")


def shell(command, seconds, **settings):
    """Runs a command of the shell under contrib/env.sh; fails with its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("UCX_")}
    environment.update(settings, CUDA_NC_QUIET="1")
    script = f". {shlex.quote(str(ROOT / 'contrib/env.sh'))} && {command}"
    try:
        done = subprocess.run(
            ["timeout", "-k", "5", str(seconds), "bash", "-c", script],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=seconds + 30)
    except subprocess.TimeoutExpired as expired:
        pytest.fail(f"{command} did not even end when killed:\n{expired.output}")
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The folder with all programs, built for host memory and the simulated GPU."""
    output = tmp_path_factory.mktemp("examples")
    shell(f"make -C {ROOT}/examples OUTPUT={output} SIM=1 CFLAGS='-O2 -Wall -Wextra -Werror' "
          "CXXFLAGS='-O2 -Wall -Wextra -Werror'", BUILD_SECONDS)
    return output


def assert_is_right(program, output):
    assert re.search(rf"^{program}: .*[ ,]0 wrong (bytes|elements)$", output, re.M), output


def test_the_default_build_needs_neither_cuda_nor_the_simulated_gpu(tmp_path):
    shell(f"make -C {ROOT}/examples OUTPUT={tmp_path}", BUILD_SECONDS)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(PROGRAMS)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("program", ["mpi_vector", "halo"])
def test_mpi_in_host_memory(programs, program, ranks):
    assert_is_right(program, shell(f"mpirun -np {ranks} {programs}/{program}", RUN_SECONDS))


@pytest.mark.parametrize("transport", ["auto", "n"])
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("program", ["mpi_vector", "halo"])
def test_mpi_on_the_simulated_gpu(programs, program, ranks, transport):
    output = shell(f"mpirun -np {ranks} {programs}/{program} sim", RUN_SECONDS,
                   UCX_CUDA_NC_GPU="sim", UCX_CUDA_NC_TRANSPORT=transport,
                   UCX_CUDA_NC_STATS="y")
    assert_is_right(program, output)
    assert ("  GPU to GPU (" in output) == (transport != "n"), output


@pytest.mark.parametrize("memory", ["host", "sim"])
def test_the_c_api_in_a_ucp_program(programs, memory):
    output = shell(f"{programs}/ucp_layout {memory}", RUN_SECONDS, UCX_CUDA_NC_GPU="sim")
    assert_is_right("ucp_layout", output)


WHERE = {"host": "host memory", "sim": "GPU to GPU"}


@pytest.mark.parametrize("memory", WHERE)
@pytest.mark.parametrize("program", ["shmem_put", "paged_cache"])
def test_puts_by_the_c_api(programs, program, memory):
    output = shell(f"{programs}/{program} {memory}", RUN_SECONDS, UCX_CUDA_NC_GPU="sim",
                   UCX_CUDA_NC_STATS="y", UCX_MEMTYPE_CACHE="n")
    assert_is_right(program, output)
    assert f"One-sided, {WHERE[memory]}: " in output, output
    assert re.search(r", [1-9]\d* of them from layout to layout", output), output


@pytest.mark.parametrize("program", PROGRAMS)
def test_memory_that_was_not_built_in_is_refused(programs, program):
    output = shell(f"! {programs}/{program} nonsense", RUN_SECONDS)
    assert "no memory is called 'nonsense'" in output
