"""Every MPI operation that the product serves, with derived datatypes. Each operation is a subtest;
operations/deadline.cc puts a limit on each, names the one that hangs, and prints its stacks."""
import re

import pytest

from support import mpi

LIMIT = 1200
KINDS = {"pair": 2, "threads": 2, "collective": 4}  # ranks
MEMORIES = ("host", "sim", "sim,host")
ON_GPUS = MEMORIES[1:]
# How messages from GPU to GPU go, where the transport serves them.
WAYS = {"ompi5-transport": "pull", "ompi4-transport": "pipe"}
# Each rank on another GPU.
EACH_RANK = ("bash", "-c", 'UCX_CUDA_NC_SIM_DEVICE=$((OMPI_COMM_WORLD_RANK % 2)) exec "$@"', "-")

CASES = [
    *[(kind, config, memory) for config in WAYS for memory in ON_GPUS for kind in KINDS],
    *[(kind, config, memory)
      for config in ("ompi5-plugin", "ompi5-shim", "ompi4-ucx1.22", "ompi4-system-ucx")
      for memory in MEMORIES for kind in KINDS],
    *[("pair", config, memory) for config in ("ompi5-ob1", "ompi4-ob1") for memory in ON_GPUS],
]


def last_operation(text):
    return next(iter(reversed(re.findall(r"^RUN (\S+)", text, re.M))), None)


def outcomes(text):
    """{operation: (word, what)}; several ranks may report one failure."""
    found = {}
    for word, name, what in re.findall(r"^(PASS|FAIL|SKIP) ([^\s:]+)(.*)", text, re.M):
        if found.get(name, ("PASS",))[0] != "FAIL":
            found[name] = word, what.lstrip(": ")
    return found


def report(subtests, name, word, what):
    with subtests.test(msg=name):
        if word == "SKIP":
            pytest.skip(what)
        if word == "FAIL":
            pytest.fail(f"{name}: {what}", pytrace=False)


def run_all(job, run, subtests, ranks, *arguments, each_rank=(), env=()):
    """All of a kind; what the program printed, until it crashed for the first time."""
    if mpi.FULL:
        arguments += ("--full", "--limit", 300)
    first, after = None, None
    while True:
        try:
            text = job(ranks, *each_rank, job.programs / "operations-test", *arguments,
                       *(["--after", after] if after else []), env=env, status=None).output
        except pytest.fail.Exception as failure:
            pytest.fail(f"{last_operation(run.log.read_text(errors='replace'))}: {failure}",
                        pytrace=False)
        first = first or text
        found = outcomes(text)
        ended = re.search(r"^END", text, re.M)
        for name, (word, what) in found.items():
            # Behind the failure that ended the program are the stacks.
            report(subtests, name, word,
                   what if ended or word != "FAIL" else text[text.index(f"FAIL {name}"):][:20000])
        if ended:
            break
        # It crashed or hung. It starts again behind that operation.
        last = last_operation(text)
        if last not in found:
            report(subtests, last or "start", "FAIL",
                   "the program ended\n" + "\n".join(text.splitlines()[-60:]))
        if last == after:
            break
        after = last
    return first


@pytest.mark.parametrize("kind, config, memory", CASES)
def test_operations(job, run, subtests, kind, config, memory):
    first = run_all(job, run, subtests, KINDS[kind], "--memory", memory, "--kind", kind,
                    each_rank=EACH_RANK if config in WAYS else (),
                    env=[{"UCX_CUDA_NC_STATS": "y"}] if config in WAYS else [])
    if config in WAYS and (kind, memory) == ("pair", "sim"):
        with subtests.test(msg=f"messages-go-by-{WAYS[config]}"):
            assert re.search(rf"GPU to GPU: sent .*[1-9][0-9]* by {WAYS[config]}, .*received",
                             first)


@pytest.mark.parametrize("config, memory, gpus", [
    ("ompi5-transport", "sim", 2), ("ompi5-transport", "sim", 1), ("ompi5-transport", "sim,host", 2),
    ("ompi5-transport", "host", 2), ("ompi5-plugin", "host", 2), ("ompi4-transport", "sim", 2),
    ("ompi4-transport", "sim,host", 2), ("ompi4-system-ucx", "host", 2)])
def test_contiguous_on_one_side(job, run, subtests, config, memory, gpus):
    """Every message between GPUs goes there straight or by pull, whichever call sends or receives
    it."""
    output = run_all(job, run, subtests, 2, "--memory", memory, "--kind", "sides",
                     each_rank=EACH_RANK if gpus == 2 else (),
                     env=[mpi.ALL_DIRECT] if "transport" in config else [])
    if memory == "sim":
        with subtests.test(msg="all-messages-are-counted"):
            assert mpi.sides_counted(output)


@pytest.mark.parametrize("config", ["ompi5-transport", "ompi4-transport"])
@pytest.mark.parametrize("variables", [
    {"UCX_CUDA_NC_CONTIGUOUS": "y"}, {"UCX_CUDA_NC_SIM_SHARED": "n"},
    {"UCX_CUDA_NC_SIM_SHARED": "pieces"}, {"UCX_CUDA_NC_SIM_SHARED": "managed"}],
    ids=["all", "pool", "pieces", "managed"])
def test_contiguous_memory_of_other_kinds(job, run, subtests, config, variables):
    """The same calls where contiguous memory is sent by us too, or is not shared as a whole."""
    run_all(job, run, subtests, 2, "--memory", "sim", "--kind", "sides", each_rank=EACH_RANK,
            env=[mpi.ALL_DIRECT, variables])


@pytest.mark.limit(mpi.LIMIT)
@pytest.mark.parametrize("config, memory, ranks", [
    ("ompi5-transport", "sim", 3), ("ompi5-transport", "sim", 4), ("ompi5-transport", "sim,host", 2),
    ("ompi5-transport", "host", 3), ("ompi5-plugin", "sim", 2), ("ompi5-plugin", "sim,host", 3),
    ("ompi5-plugin", "host", 2), ("ompi5-shim", "sim", 1), ("ompi4-transport", "sim", 3),
    ("ompi4-ucx1.22", "sim,host", 2), ("ompi4-system-ucx", "sim", 2)])
def test_local_work(job, config, memory, ranks):
    """Packs, messages to oneself, collectives and reductions, each in a random form."""
    number = 100 * list(mpi.CONFIGURATIONS).index(config) + 10 * len(memory) + ranks
    result = job(ranks, *(EACH_RANK if config in WAYS else ()), job.programs / "local-work",
                 "--memory", memory, "--rounds", mpi.TYPES // 3, "--seed", mpi.SEED + number,
                 env=[{"UCX_CUDA_NC_STATS": "y"}])
    assert "PASS local_work" in result.output
    # A rank's own part of a collective, where it is sent and received as different types.
    assert memory != "sim" or re.search(r"^copy .* \(from another layout on the same GPU\)$",
                                        result.output, re.M)


@pytest.mark.limit(mpi.LIMIT)
@pytest.mark.parametrize("config, memory, ranks", [
    ("ompi5-transport", "sim", 4), ("ompi5-plugin", "sim,host", 3), ("ompi4-transport", "sim", 2)])
def test_long_local_work(job, config, memory, ranks):
    result = job(ranks, *(EACH_RANK if config in WAYS else ()), job.programs / "local-work",
                 "--memory", memory, "--rounds", mpi.TYPES // 5, "--bytes", 128 << 10, "--seed",
                 mpi.SEED + ranks)
    assert "PASS local_work" in result.output
