"""Ways in which the product gets into a process, processes in which it must do nothing, and what
the manual says of Open MPI 5.0.11 itself."""
import re

import pytest

from support import mpi, product

LIMIT = mpi.LIMIT
LOADED = {"plugin": mpi.PLUGIN, "shim": mpi.SHIM, "both": {**mpi.PLUGIN, **mpi.SHIM}}
STATS = {"UCX_CUDA_NC_STATS": "y"}


@pytest.mark.parametrize("way", ["plugin", "shim"])
def test_wrong_bytes_are_cured(run, openmpi5, way):
    run("mpirun", "-np", 2, openmpi5 / "stock-wrong-bytes", env=mpi.environment(LOADED[way]))


def test_wrong_bytes_of_stock(run, openmpi5):
    """"WRONG" must be said, not only a bad exit status seen."""
    result = run("mpirun", "-np", 2, openmpi5 / "stock-wrong-bytes", env=mpi.environment(),
                 status=None)
    assert re.search("^WRONG sent", result.output, re.M)
    assert re.search("^WRONG packed", result.output, re.M)


@pytest.mark.parametrize("setting", ["HOST_ENGINE", "STAGING_SIZE", "ENABLE", "SIM_FAULTS"])
def test_unknown_value_warns_once(run, openmpi5, setting):
    """The job runs, and each of its two processes says once that it cannot read the value."""
    env = mpi.environment(mpi.PLUGIN, {f"UCX_CUDA_NC_{setting}": "nonsense"})
    result = run("mpirun", "-np", 2, openmpi5 / "stock-wrong-bytes", env=env)
    assert result.count("nonsense") == 2 and result.count("WARN") == 2


@pytest.mark.parametrize("way", ["plugin", "shim"])
def test_disabled_leaves_stock(run, openmpi5, way):
    """Switched off, Open MPI 5.0.11 is wrong as ever, and nothing is counted."""
    env = mpi.environment(LOADED[way], STATS, {"UCX_CUDA_NC_ENABLE": "n"})
    result = run("mpirun", "-np", 2, openmpi5 / "stock-wrong-bytes", env=env, status=None)
    assert re.search("^WRONG", result.output, re.M)
    assert "cuda_nc" not in result.output.lower()


@pytest.mark.parametrize("way", ["plugin", "shim"])
@pytest.mark.parametrize("release", [5, 4])
def test_rtld_local(run, openmpi5, release, way):
    """libmpi by dlopen with RTLD_LOCAL; the message must be served by us."""
    mpirun, library = "mpirun", "libmpi.so.40"
    env = mpi.environment(LOADED[way], STATS)
    if release == 5:
        libraries = run("mpicxx", "--showme:libdirs", env=mpi.environment()).output
        library = f"{libraries.split()[0]}/libmpi.so.40"
    elif mpi.have_openmpi4():
        mpirun = "mpirun.openmpi"
    else:
        pytest.skip("no system Open MPI 4 is installed")
    result = run(mpirun, "-np", 2, "python3", product.ROOT / "test/mpi/loading/rtld_local.py",
                 library, env=env)
    assert re.search("^RIGHT", result.output, re.M)
    assert re.search("strided.*host engine", result.output)


@pytest.mark.parametrize("said, command", [
    ("", ["true"]),
    ("one two\n", ["bash", "-c", "echo one $(echo two)"]),
    ("42\n", ["python3", "-c",
              'import subprocess; print(6 * int(subprocess.check_output(["echo", "7"])))']),
], ids=["true", "bash", "python"])
def test_shim_is_silent_in(run, said, command):
    """The shim in a process without MPI changes nothing of its output."""
    assert run(*command, env=mpi.environment(mpi.SHIM, STATS)).output == said


@pytest.mark.parametrize("release, mpirun", [(5, "mpirun"), (4, "mpirun.openmpi")])
def test_layouts_of_the_c_api(run, request, release, mpirun):
    """With the shim, which mends Open MPI's own types; no message is sent."""
    programs = request.getfixturevalue(f"openmpi{release}")
    result = run(mpirun, "-np", 1, programs / "c-api", "--types", mpi.TYPES, "--seed", mpi.SEED,
                 env=mpi.environment(mpi.SHIM))
    assert "PASS c_api" in result.output


@pytest.fixture(scope="session")
def two_workers(tmp_path_factory):
    from support.runner import Runner

    program = tmp_path_factory.mktemp("workers") / "two-workers"
    ucx = product.ucx()
    run = Runner(LIMIT, product.LOGS / "mpi/build-two-workers.log", mpi.environment())
    run("g++", "-std=c++17", "-O1", "-Wall", "-Wextra",
        product.ROOT / "test/mpi/loading/two_workers.cc", f"-I{ucx}/include", f"-L{ucx}/lib",
        "-lucp", "-lucs", f"-Wl,-rpath-link,{ucx}/lib", "-o", program)
    return program


@pytest.mark.parametrize("way", LOADED)
def test_ucx_without_mpi(run, two_workers, way):
    result = run(two_workers, env=mpi.environment(LOADED[way], STATS if way != "plugin" else {}))
    # Nothing else is said where the shim is there.
    assert way == "plugin" or result.output == "RIGHT\n"
