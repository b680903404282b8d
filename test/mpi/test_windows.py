"""Windows: MPI_Put, MPI_Get and MPI_Accumulate of derived types, with the plugin and without.

Open MPI's osc ucx calls UCX's puts and gets for each block; its osc rdma sends short messages and
copies within a machine. Sums are left out under osc ucx: Open MPI 5.0.11 itself adds wrong numbers
there where the targets of derived types overlap."""
import re

import pytest

from support import mpi, product

LIMIT = mpi.LIMIT
SEEDS = range(mpi.SEED, mpi.SEED + (10 if mpi.FULL else 1))
STATS = {"UCX_CUDA_NC_STATS": "y", "UCX_CUDA_NC_SIM_DELAY": 1}
BY_UCX = {"OMPI_MCA_osc": "ucx"}
BY_RDMA = {"OMPI_MCA_osc": "rdma"}
# UCX knows a simulated GPU's memory then.
SIM = {"UCX_MEMTYPE_CACHE": "n"}


def windows(job, ranks, *arguments, env):
    result = job(ranks, job.programs / "windows-test", *arguments, env=[STATS, *env])
    assert "RIGHT" in result.lines() and "illegal access" not in result.output
    return result


def moved(result, memory):
    """[(puts and gets, lists)] of each process that had any."""
    found = re.findall(rf"One-sided, {memory}: (\d+) puts and (\d+) gets in (\d+) lists",
                       result.output)
    return [(int(puts) + int(gets), int(lists)) for puts, gets, lists in found]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("allocates", [(), ("--allocate",)], ids=["created", "allocated"])
@pytest.mark.parametrize("config", ["ompi5-stock", "ompi5-plugin", "ompi5-transport"])
def test_host_memory(job, config, allocates, seed):
    result = windows(job, 3, "--no-sums", "--seed", seed, *allocates, env=[BY_UCX])
    # What both processes have mapped UCX writes itself, up to some length.
    if config == "ompi5-transport" and not allocates:
        counted = moved(result, "host memory")
        assert len(counted) == 3, result.output
        # Without gathering each would be a list.
        assert sum(number for number, _ in counted) > 1.3 * sum(lists for _, lists in counted)


@pytest.mark.parametrize("config", ["ompi5-stock", "ompi5-plugin", "ompi5-transport"])
def test_sums_in_host_memory(job, config):
    windows(job, 3, "--seed", mpi.SEED, env=[BY_RDMA])


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("config", ["ompi5-transport"])
def test_gpu_memory(job, config, ranks, seed):
    result = windows(job, ranks, "--no-sums", "--no-self", "--memory", "sim", "--seed", seed,
                     env=[BY_UCX, SIM])
    counted = moved(result, "GPU to GPU")
    assert len(counted) == ranks, result.output
    # The blocks of a type are gathered.
    assert sum(number for number, _ in counted) > 5 * sum(lists for _, lists in counted)


@pytest.mark.parametrize("config, memory", [("ompi5-stock", "host"), ("ompi5-transport", "host"),
                                            ("ompi5-transport", "sim")])
def test_benchmark(job, run, one_at_a_time, config, memory):
    """It compares every byte."""
    program = mpi.WORK / "mpi_windows"
    with one_at_a_time("programs"):
        run("make", "-s", "-C", product.ROOT / "bench", "-f", "mpi_windows.mk", "MPICXX=mpicxx",
            f"OUTPUT={program}", env=product.environment())
    result = job(2, program, "--memory", memory, "--smallest", 16384, "--largest", 65536,
                 "--repeats", 2, env=[BY_UCX, SIM, STATS])
    assert "mpi wrong bytes: 0" in result.output
    assert len(re.findall(r"^mpi (?:put|get) .* us$", result.output, re.M)) == 6
