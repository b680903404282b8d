"""One thing very often: what it costs in memory does not grow. Short here; with --full as often as
it took to make defects of the past felt. Times are printed, and asserted with --full alone: a
machine of CI is shared. Those marked `timed` run when nothing else does (-m timed).

guards-test prints "rank R: NAME VALUE"."""
import os
import re

import pytest

from support import mpi

FULL = mpi.FULL
LIMIT = 1200 if FULL else 300
STATS = {"UCX_CUDA_NC_STATS": "y"}
# The machine's GPU is not what is looked at: its launches take no time.
QUICK = {"UCX_CUDA_NC_SIM_DELAY": 1}
# In GPU memory by the transport, by fragments, and in host memory.
WAYS = {"direct": ("ompi5-transport", "sim"), "fragments": ("ompi5-plugin", "sim"),
        "host": ("ompi5-plugin", "host"), "ompi4-direct": ("ompi4-transport", "sim")}
by_way = pytest.mark.parametrize("config, memory", WAYS.values(), ids=WAYS)
# UCX 1.13, whose requests are laid out in another way.
WAYS_TO_CANCEL = {**WAYS, "ompi4-system": ("ompi4-system-ucx", "host")}


def told(result, name):
    """What both ranks say."""
    values = [float(value) for value in
              re.findall(rf"^rank \d+: {name} (-?[\d.]+)$", result.output, re.M)]
    assert len(values) == 2, f"{name} is not told"
    return values


def guards(job, *arguments, env=()):
    result = job(2, job.programs / "guards-test", *arguments, env=[QUICK, STATS, *env])
    assert "WRONG" not in result.output
    return result


@pytest.fixture(scope="module")
def stock(openmpi5, one_at_a_time):
    """Function that does the same in host memory without the product."""
    from support import product
    from support.runner import Runner

    def stock(*arguments):
        # Each worker of pytest asks, perhaps at the same time.
        worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
        run = Runner(LIMIT, product.LOGS / f"mpi/stock-{arguments[0]}-{worker}.log", None)
        return run("mpirun", "-np", 2, openmpi5 / "guards-test", *arguments, "--memory", "host",
                   env=mpi.environment())

    return stock


@pytest.fixture(scope="module")
def stock_bytes_per_cancel(stock):
    """What Open MPI and UCX keep of a cancelled receive."""
    return max(told(stock("cancels", "--count", 5000), "bytes-per-cancel"))


@pytest.mark.parametrize("source", ["known", "any"])
@pytest.mark.parametrize("config, memory", WAYS_TO_CANCEL.values(), ids=WAYS_TO_CANCEL)
def test_cancelled_receives(job, stock_bytes_per_cancel, memory, source):
    """Each leaves no more behind than without the product, and the messages afterwards go the way
    that those before went. (With --full more of them than there are numbers for messages.)"""
    count = 70000 if FULL else 5000
    result = guards(job, "cancels", "--count", count, "--blocks", 1000, "--memory", memory,
                    *(["--any"] if source == "any" else []))
    assert max(told(result, "bytes-per-cancel")) <= stock_bytes_per_cancel + 64
    if "transport" in job.name:
        sent = re.findall(r"GPU to GPU: sent (\d+) by pull, (\d+) by pipe, (\d+) by slots",
                          result.output)
        assert sum(int(number) for line in sent for number in line) == 400
    if FULL:
        before, after = (max(told(result, f"us-{when}")) for when in ("before", "after"))
        assert after <= 3 * before


@pytest.mark.parametrize("config, memory", [WAYS["direct"], WAYS["fragments"], WAYS["host"]],
                         ids=["direct", "fragments", "host"])
def test_types_used_once(job, memory):
    """Work lists of types that are gone do not stay: host memory counts, too."""
    count, cache = (80000, 16) if FULL else (10000, 2)  # MiB
    result = guards(job, "types", "--count", count, "--blocks", 40, "--memory", memory,
                    env=[{"UCX_CUDA_NC_WORKLIST_CACHE_SIZE": f"{cache}M"}])
    # From the middle on, when the cache has been full for a while.
    assert max(told(result, "bytes-grown")) <= 2**20


@pytest.mark.timed
@by_way
def test_messages_outstanding(job, stock, memory):
    """Of thousands at a time each takes little longer than of a few. (Slots for what cannot be
    pulled are fewer than that: messages without one go by fragments, at their price. In host
    memory they wait in UCX's queues: about as long as without the product.)"""
    arguments = ("outstanding", "--count", 50000 if FULL else 5000, "--blocks", 100)
    result = guards(job, *arguments, "--memory", memory, env=[{"UCX_CUDA_NC_PULL_MAX": "inf"}])
    few, all_of_them = (max(told(result, f"us-among-{number}")) for number in ("few", "all"))
    print(f"us for each message: {few} among 64, {all_of_them} among all")
    if FULL and "transport" in job.name:
        # Those that the mover's ring has no room for wait for it, on a machine that does nothing
        # else: a thread of the simulated GPU that gets no CPU keeps others from their places.
        launched, in_sets, ordered = (
            sum(map(int, re.findall(rf"(\d+) {what}", result.output)))
            for what in ("sides of pipes in", "sides in sets", "orders to a mover"))
        assert launched - in_sets <= (launched + ordered) / 20
    if FULL:
        if memory == "host":
            few = max(few, *told(stock(*arguments), "us-among-all"))
        assert all_of_them <= 1.5 * few


@by_way
def test_sends_before_receives(job, memory):
    """Of up to 4 KiB by MPI_Send: they do not wait for their receiver, nor for its rank."""
    result = guards(job, "early-sends", "--count", 20, "--memory", memory)
    assert max(told(result, "wrong")) == 0
