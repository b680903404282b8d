"""Random types, layouts and nc_perftest mpi between ranks."""
import json

import pytest

from support import mpi, product

LIMIT = mpi.LIMIT
MEMORIES = ("host", "sim", "sim,host")
WHOLE = ("ompi5-plugin", "ompi4-ucx1.22", "ompi4-system-ucx")


def _random_cases():
    """(test, configuration, number of types, memory, seed), in the order of the seeds."""
    rows = []

    def whole(config):
        rows.extend(("sent", config, mpi.TYPES, memory) for memory in MEMORIES)
        rows.extend(("local", config, mpi.TYPES // 2, memory) for memory in ("host", "sim,host"))

    whole("ompi5-plugin")
    rows.append(("sent", "ompi5-shim", mpi.TYPES, "sim"))
    for config, types in (("both", 500), ("tcp", 500), ("small-staging", 500),
                          ("no-pinned-memory", 40)):
        rows.append(("sent", f"ompi5-{config}", types, "sim"))
    whole("ompi4-ucx1.22")
    whole("ompi4-system-ucx")
    return [(*row, mpi.SEED + number) for number, row in enumerate(rows, 1)]


def random_cases(test):
    chosen = [row[1:] for row in _random_cases() if row[0] == test]
    return pytest.mark.parametrize("config, types, memory, seed", chosen,
                                   ids=[f"{row[0]}-{row[2]}" for row in chosen])


@random_cases("sent")
def test_random_types(job, types, memory, seed):
    job(2, job.programs / "random-types", "--types", types, "--seed", seed, "--memory", memory)


@pytest.mark.parametrize("number", range(mpi.JOBS))
@pytest.mark.parametrize("memory", ["host", "sim"])
@pytest.mark.parametrize("config", ["ompi5-transport", "ompi4-transport"])
def test_many_random_types(job, memory, number):
    """100,000 take 6 s in host memory and 55 s on the simulated GPU, on two idle cores."""
    job(2, job.programs / "random-types", *mpi.SMALL, "--seed", mpi.SEED + 1000 + number,
        "--memory", memory)


@pytest.mark.parametrize("config", ["ompi5-transport", "ompi4-transport"])
@pytest.mark.parametrize("memory", ["sim", "sim,host"])
def test_random_types_in_managed_memory(job, memory):
    """The CPU could touch it, so that nothing but wrong bytes would tell of a missing wait."""
    job(2, job.programs / "random-types", "--types", mpi.TYPES // 4, "--seed", mpi.SEED + 2000,
        "--memory", memory, env=[{"UCX_CUDA_NC_SIM_SHARED": "managed"}])


@random_cases("local")
def test_local_calls(job, types, memory, seed):
    """Random types packed, buffered and copied instead of sent."""
    job(2, job.programs / "random-types", "--local", "--types", types, "--seed", seed, "--memory",
        memory)


@pytest.mark.parametrize("layout", ["vector-8B", "triangle", "transpose", "face-x", "struct",
                                    "random-64B"])
@pytest.mark.parametrize("memory", ["host", "sim"])
@pytest.mark.parametrize("config", WHOLE)
def test_layout(job, tmp_path, memory, layout):
    output = tmp_path / "layout.json"
    job(2, mpi.WORK / f"mpi_layouts-{job.configuration.mpi}", "--memory", memory, "--layout",
        layout, "--output", output, "--quick")
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert rows and all(row["wrong_bytes"] == 0 for row in rows)


@pytest.mark.parametrize("layout", ["vector-4KiB", "sub-matrix", "triangle", "face-y", "subarray-4D",
                                    "struct", "random-8B"])
@pytest.mark.parametrize("config", ["ompi5-plugin"])
def test_layout_of_a_size(job, tmp_path, layout):
    output = tmp_path / "layout.json"
    job(2, mpi.WORK / f"mpi_layouts-{job.configuration.mpi}", "--layout", layout, "--output", output,
        "--quick", "--bytes", "256K")
    row = json.loads(output.read_text())
    assert row["wrong_bytes"] == 0 and 0.9 < row["bytes"] / (256 << 10) < 1.1


def perftest(job):
    return (product.INSTALL / "bin/nc_perftest_mpi" if job.configuration.mpi == 5 else
            product.BUILD / "nc_perftest_mpi-4")


PERFTESTED = ("ompi5-stock", "ompi5-plugin", "ompi5-transport", "ompi4-system-ucx")
WITH_MEMORY = [(config, memory) for config in PERFTESTED for memory in ("host", "gpu")
               if (config, memory) != ("ompi5-stock", "gpu")]

HALOS = ("-t", "halo6,halo26", "--box", 8, "--halo", 2, "--seconds", 0.01)
WAYS = ("--by", "isend,persistent,alltoallw,neighbor")


@pytest.mark.parametrize("config, memory", WITH_MEMORY)
def test_perftest(job, memory):
    """Every test at least once."""
    job(3, perftest(job), "-m", memory, "--sizes", "1K,100K", "-l", "vector-8", "-l",
        "triangle:100,8", "-l", "plane-x", "--window", 4, "--box", 8, "--halo", 2, "-t",
        "latency,bandwidth,bidir,pairs,pairs-bidir,halo6,halo26", "--seconds", 0.01)


@pytest.mark.parametrize("config, memory", WITH_MEMORY)
def test_perftest_alone(job, memory):
    job(1, perftest(job), "-m", memory, "--box", 8, "--halo", 2, "-t", "halo6,halo26", "--seconds",
        0.01)


def halo_rows(path):
    """{(test, layout): row} of a result file."""
    return {(row["test"], row["layout"]): row for row in json.loads(path.read_text())["rows"]}


HALO_ROWS = {(test, f"box-8{way}") for test in ("halo6", "halo26")
             for way in ("", " persistent", " alltoallw", " neighbor")}


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("config, memory", WITH_MEMORY)
def test_perftest_halos_by_each_way(job, tmp_path, memory, ranks):
    """Ranks that are their own neighbours, and that have several messages for one another."""
    output = tmp_path / "halos.json"
    job(ranks, perftest(job), "-m", memory, *HALOS, *WAYS, "--json", output)
    rows = halo_rows(output)
    assert rows.keys() == HALO_ROWS and all(row["verified"] for row in rows.values())


@pytest.mark.parametrize("config, memory", [*WITH_MEMORY, ("ompi5-stock", "gpu")])
def test_perftest_halos_of_contiguous_buffers_alone(job, tmp_path, memory):
    """Without the plugin too: the stock Open MPI would crash on a datatype in GPU memory."""
    output = tmp_path / "halos.json"
    job(3, perftest(job), "-m", memory, *HALOS, *WAYS, "--contiguous-only", "--json", output)
    rows = halo_rows(output)
    assert rows.keys() == HALO_ROWS
    assert all(row["verified"] and row["ratio"] == 1 and row["text"].endswith("contiguous only")
               for row in rows.values())


@pytest.mark.parametrize("fault", ["byte", "gap"])
@pytest.mark.parametrize("only", [(), ("--contiguous-only", )], ids=["datatypes", "contiguous"])
@pytest.mark.parametrize("config", PERFTESTED)
def test_perftest_sees_wrong_halos(job, only, fault):
    result = job(2, perftest(job), "-m", "host", *HALOS, *WAYS, *only, "--inject", fault,
                 status=None)
    assert result.status != 0
    assert result.count("WRONG") == len(HALO_ROWS)


@pytest.mark.parametrize("config", PERFTESTED[:1])
@pytest.mark.parametrize("options, said", [
    (("-t", "latency", "--by", "neighbor"), "--by says how halos are exchanged: add halo6"),
    (("-t", "latency,halo6", "--contiguous-only"), "--contiguous-only is for halos alone"),
    (("-t", "halo6", "--bidir", "--contiguous-only"), "--contiguous-only is for halos alone"),
    (("-t", "halo6", "--by", "isend,bogus"), "bogus not in {isend,persistent,")])
def test_perftest_refuses_halo_options(job, options, said):
    result = job(2, perftest(job), "-m", "host", *options, status=None)
    assert result.status != 0 and said in result.output and "vector" not in result.output


@pytest.mark.parametrize("config", PERFTESTED[1:])
def test_perftest_mixed(job):
    job(2, perftest(job), "-m", "gpu,host", "--sizes", "1K,100K", "-l", "vector-8", "-t", "latency",
        "--seconds", 0.01)


@pytest.mark.parametrize("config", PERFTESTED)
def test_perftest_sees_wrong_bytes(job):
    result = job(2, perftest(job), "-m", "host", "--sizes", "4K", "-l", "vector-8", "-t", "latency",
                 "--seconds", 0.01, "--inject", "gap", status=None)
    assert "WRONG" in result.output
