"""bench/stencil: halo exchanges by datatypes and by hand. Its CUDA kernels are compiled here, where
nvcc is found, and not run."""
import json
import pathlib
import re
import sys

import pytest

from support import mpi, product
from support.runner import Runner

LIMIT = mpi.LIMIT
TYPED = ["types", "types-persistent", "neighbor"]
WAYS = {"host": [*TYPED, "hand", "contiguous"], "sim": TYPED}
CASES = [("ompi5-stock", "host"), ("ompi5-plugin", "host"), ("ompi5-plugin", "sim"),
         ("ompi5-transport", "sim")]


def nvcc():
    found = product.LOCAL / "cuda_dir"
    path = pathlib.Path(found.read_text().strip() if found.exists() else "/usr/local/cuda",
                        "bin/nvcc")
    return path if path.exists() else "no"


@pytest.fixture(scope="session")
def program(one_at_a_time):
    path = mpi.WORK / "stencil"
    mpi.WORK.mkdir(parents=True, exist_ok=True)
    with one_at_a_time("stencil"):
        run = Runner(600, product.LOGS / "mpi" / "build-stencil.log", product.environment())
        run("make", "-s", "-C", product.ROOT / "bench", "-f", "stencil.mk", "MPICXX=mpicxx",
            f"NVCC={nvcc()}", f"OUTPUT={path}")
    return path


@pytest.fixture
def stencil(run, program):
    def stencil(config, ranks, memory, *options, status=0, env=()):
        configuration = mpi.CONFIGURATIONS[config]
        return run(configuration.mpirun, "-np", ranks, program, "--memory", memory, "--steps", 5,
                   *options, status=status, env=mpi.environment(configuration.variables, *env))
    return stencil


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("config, memory", CASES)
def test_every_way_and_dimension(stencil, tmp_path, config, memory, ranks):
    """Boxes with odd and even edges; with 2 both faces are all there is."""
    output = tmp_path / "rows.json"
    stencil(config, ranks, memory, "--box", "2,5,12", "--json", output, "--label", 'a "b"')
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [(row["box"], row["dimension"], row["way"]) for row in rows] == [
        (box, dimension, way) for box in (2, 5, 12) for dimension in "xyz" for way in WAYS[memory]]
    for row in rows:
        assert row["label"] == 'a "b"' and row["ranks"] == ranks and row["samples"] == 5
        assert row["verified"] and row["wrong_elements"] == 0 and row["exchange_us"] > 0
        # The CPU cannot compute in simulated GPU memory.
        assert (row.get("step_us", 0) > 0) == (memory == "host")


def test_messages_from_gpu_to_gpu(stencil):
    stencil("ompi5-transport", 2, "sim", "--box", "6,24", env=[mpi.ALL_DIRECT])


def test_exchange_before_kernel(stencil):
    stencil("ompi5-plugin", 2, "host", "--box", "2,7", "--first", "exchange")


def test_chosen_ways_and_ratios(stencil):
    lines = stencil("ompi5-plugin", 2, "host", "--box", 9, "--dimension", "z,x", "--way",
                    "hand,types").lines()
    rows = [line.split() for line in lines if line.split()[:1] == ["9"]]
    assert [row[1:3] for row in rows] == [["x", "types"], ["x", "hand"], ["z", "types"],
                                          ["z", "hand"]]
    assert all(row[8] == "-" for row in rows)  # nothing contiguous to compare with
    assert [row[7] for row in rows if row[2] == "hand"] == ["1.00", "1.00"]


PLACES = {"halo": "in the halo", "gap": "at a corner", "step": "inside"}
WRONG = [(memory, way, inject, place) for memory, ways in WAYS.items() for way in ways
         for inject, place in PLACES.items() if way != "contiguous"]
# It leaves the field alone.
WRONG.append(("host", "contiguous", "halo", "contiguous element"))


@pytest.mark.parametrize("memory, way, inject, place", WRONG,
                         ids=["-".join(row[:3]) for row in WRONG])
def test_one_wrong_bit_is_found(stencil, memory, way, inject, place):
    output = stencil("ompi5-plugin", 2, memory, "--box", 8, "--dimension", "y", "--way", way,
                     "--inject", inject, status=1).output
    found = [line for line in output.splitlines() if line.startswith(f"WRONG: {way}, box 8, ")]
    assert any("rank 0" in line and place in line for line in found), output
    # What is wrong in a face goes on to the neighbour.
    assert any("rank 1" in line for line in found) == (inject == "step")


def test_samples_in_a_row_are_as_many(stencil, tmp_path):
    output = tmp_path / "rows.json"
    stencil("ompi5-plugin", 2, "host", "--box", 6, "--dimension", "x", "--in-a-row", 3, "--json",
            output)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["samples"] for row in rows] == [5] * len(WAYS["host"])
    assert all(row["verified"] and row["wrong_elements"] == 0 for row in rows)


def test_verification_can_be_left_out(stencil):
    output = stencil("ompi5-plugin", 2, "host", "--box", 4, "--dimension", "z", "--no-verify",
                     "--inject", "halo").output
    assert "not verified" in output


def test_memory_that_is_not_there(stencil):
    """No GPU here, or a program without CUDA."""
    result = stencil("ompi5-plugin", 1, "cuda", "--box", 4, status=None)
    if result.status == 0:
        pytest.skip("there is a GPU")
    assert "no cuda memory" in result.output or "without CUDA" in result.output


def against_stock(run, *arguments, status=0, env=mpi.PLUGIN):
    return run(sys.executable, "-B", product.ROOT / "bench/against_stock.py", "--memory", "host",
               "--rounds", 1, "--seconds", 0.01, *arguments, status=status,
               env=mpi.environment(env)).output


def test_all_figures_beside_stock(run, program):
    """In host memory, where both sides work everywhere."""
    said = against_stock(run, "--boxes", "8,64", "--sizes", "4096,65536", "--stencil", program)
    rows = [line.strip("| ").split(" | ") for line in said.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if "stock" not in row]
    # 15 layouts of two sizes, short ones, many of two sizes, exchanges of two boxes, and faces.
    assert len(rows) == 15 * 2 + 7 + 3 * 2 + 2 * 2 + 2 * 3 * 2
    for row in rows:
        *_, stock, ours, ratio, goal = row if "m" in row[-1] else (*row, "")
        stock, ours = (float(figure.split(" (")[0]) for figure in (stock, ours))
        assert stock > 0 and float(ratio) == pytest.approx(ours / stock, rel=0.1, abs=0.1)
        if goal:
            form = r"([\d.]+) (us|of stock): (met|missed by \d+ %)"
            most, unit, verdict = re.fullmatch(form, goal).groups()
            over = (ours if unit == "us" else float(ratio)) - float(most)
            assert (verdict == "met") == (over <= 0) or abs(over) < 0.1
    assert {row[-1].split(":")[0] for row in rows if row[0] == "halo26"} == {"0.9 of stock"}


def test_figures_beside_stock_that_cannot_be_had(run):
    said = against_stock(run, "--only", "stencil", "--stencil", "/nowhere/stencil", status=1)
    assert "Failed: exit status" in said and "/nowhere/stencil" in said
    assert "Not measured: no --stencil." in against_stock(run, "--only", "stencil")
    assert "no group tea" in against_stock(run, "--only", "tea", status=2)
    assert "no plugin in this shell" in against_stock(run, status=2, env={})
