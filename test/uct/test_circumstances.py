"""Messages through the last release, loaded by the plugin path, in all kinds of circumstances."""
import re

import pytest

from support import uct
from support.uct_matrix import ORDERS_ARE_TAKEN, ROWS, SEED_OF_FLUSHES

LIMIT = uct.LIMIT
STATS = {"UCX_CUDA_NC_STATS": "y"}
PLUGIN = uct.LOADED["plugin"]
WITH = {**PLUGIN, "UCX_TLS": "cuda_nc,self"}
WAYS = {"pull": {}, "pipe": {"UCX_CUDA_NC_PULL_MAX": 0}, "slots": {"UCX_CUDA_NC_PIPE": "n"},
        "host slots": {"UCX_CUDA_NC_SIM_FAULTS": "ipc_open:1+"}}


@pytest.fixture(autouse=True)
def last_release(fetch):
    fetch(uct.LAST)


def env(*groups):
    return uct.environment(WITH, *groups, release=uct.LAST)


def sent_by(lines, way):
    """Lines that count messages which were sent this way."""
    return [line for line in lines if "sent " in line and uct.counted(line, way)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_matrix(run, build, row):
    result = uct.run_matrix(run, build("matrix"), env(uct.DIRECT, row.variables, STATS), row.seed,
                            row.arguments)
    orders = sum(map(int, re.findall(r"(\d+) orders to a mover", result.output)))
    assert orders > 0 or row.name not in ORDERS_ARE_TAKEN, result.output
    assert orders == 0 or row.name != "mover-cannot-start", result.output


@pytest.mark.parametrize("way", WAYS)
def test_way_is_used(run, build, way):
    """Every message from GPU to GPU is counted as moved this way. What cannot be pulled goes by
    pipe."""
    result = run(build("matrix"), "--seed", 1, "--batches", 16, "--kinds", "g", status=None,
                 env=env(uct.DIRECT, WAYS[way], STATS))
    for other in WAYS:
        if other != way and (way, other) != ("pull", "pipe"):
            assert not sent_by(result.lines(), other)
    assert sent_by(result.lines(), way)
    assert "RIGHT" in result.output


def test_statistics_are_for_those_who_ask(run, build):
    result = run(build("matrix"), "--seed", 1, "--batches", 4, "--kinds", "g", env=env(uct.DIRECT))
    assert "RIGHT" in result.output
    assert "statistics" not in result.output


@pytest.mark.parametrize("variables", [{}, {"UCX_CUDA_NC_PULL_MAX": 0}, {"UCX_CUDA_NC_PIPE": "n"}],
                         ids=["pulls", "no pulls", "no pipes"])
@pytest.mark.parametrize("seed", [1, 2])
def test_contiguous_on_one_side(run, build, variables, seed):
    """A datatype on one side, contiguous GPU memory on the other: UCX, which cannot read that memory,
    moves no byte of it."""
    result = run(build("matrix"), "--seed", seed, "--batches", 4 * uct.BATCHES, "--kinds", "gp",
                 "--ranks", 3, "--window", 16, status=None,
                 env=env(uct.DIRECT, variables, {"UCX_CUDA_NC_STATS": "y"}))
    assert "RIGHT" in result.output and "illegal access" not in result.output
    told = [line for line in result.lines() if "GPU to GPU: sent" in line]
    assert len(told) == 3
    for line in told:
        sent, received = line.split("; received")
        assert re.search(r"[1-9][0-9]* straight", sent), line
        assert re.search(r"[1-9][0-9]* straight", received), line
        assert " 0 declined, 0 messages abandoned" in line


@pytest.mark.parametrize("odd, kinds", [
    ("UCX_CUDA_NC_TRANSPORT=n", "ghc"), ("UCX_CUDA_NC_ENABLE=n", "hc"),
    ("UCX_CUDA_NC_GPU=none", "hc"), ("UCX_CUDA_NC_ONE_SIDED=n", "ghc"),
    ("UCX_TLS=^cuda_nc", "ghc"), ("UCX_CUDA_NC_CARRIERS=tcp", "ghc"),
], ids=["switched off", "not served", "without a GPU", "no puts", "denied", "another carrier"])
@pytest.mark.parametrize("tls", [None, "all"], ids=["unset", "all"])
def test_mixed_jobs_by_default(run, build, odd, kinds, tls):
    """Nobody asked for the transport: two of four processes have it, the others do not, or otherwise."""
    variables = {"UCX_CUDA_NC_STATS": "y"}
    if tls is not None and not odd.startswith("UCX_TLS"):
        variables["UCX_TLS"] = tls
    result = run(build("matrix"), "--seed", uct.SEED, "--batches", 4 * uct.BATCHES, "--ranks", 4,
                 "--kinds", kinds, "--odd", odd,
                 env=uct.environment(PLUGIN, uct.DIRECT, variables, release=uct.LAST))
    assert "RIGHT" in result.output and "illegal access" not in result.output
    assert "WARN" not in result.output
    assert ("GPU to GPU: sent" in result.output) == ("g" in kinds), "those that have it use it"


@pytest.mark.parametrize("way, variables", [("slots", {"UCX_CUDA_NC_PULL_MAX": 0}), ("pull", {})],
                         ids=["slots", "pull"])
def test_way_of_what_a_process_sends_to_itself(run, build, way, variables):
    result = run(build("matrix"), "--seed", 1, "--batches", 20, "--window", 24, "--kinds", "g",
                 "--self", status=None,
                 env=env(uct.DIRECT, {"UCX_CUDA_NC_CARRIERS": "posix,self", "UCX_CUDA_NC_STATS": "y"},
                         variables))
    assert re.search(rf"sent .*[1-9][0-9]* by {way}, .*received", result.output)
    assert "RIGHT" in result.output


def test_small_to_itself(run, build):
    uct.run_knowing_requests(run, build("matrix"),
                             env(uct.SMALL, {"UCX_CUDA_NC_CARRIERS": "posix,self"}),
                             "--largest", 3000, "--self")


@pytest.mark.parametrize("arguments, variables", [
    (["--reads"], {"UCX_CUDA_NC_PULL_MAX": "64M"}),
    ([], {"UCX_CUDA_NC_PULL_MAX": 0}),
    ([], {"UCX_CUDA_NC_PIPE": "n"}),
], ids=["pull", "pipe", "slots"])
def test_closed_by_flush(run, build, arguments, variables):
    """Endpoints that are closed by a flush while a message is under way."""
    for slow in (1000, 5000, 25000):  # times; a process may have to wait for its core that long
        result = run(build("closing"), "--seed", SEED_OF_FLUSHES, *arguments, status=None,
                     env=env(variables, {"UCX_CUDA_NC_SIM_FAULTS": f"slow:{slow}"}))
        if "GPUs are not slow enough" not in result.output:
            break
    assert result.status == 0 and "RIGHT" in result.output
    assert "illegal access" not in result.output


@pytest.mark.parametrize("carrier", ["tcp", "posix"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("who", ["receiver", "sender"])
def test_closed_by_force(run, build, who, way, carrier):
    """In the middle of a message, by one side alone: both ends of it end, and keep nothing."""
    for slow in (1000, 5000, 25000):  # times; a process may have to wait for its core that long
        result = run(build("closing"), "--seed", SEED_OF_FLUSHES, "--rounds", 4,
                     f"--{who}-forces", status=None,
                     env=env(WAYS[way], {"UCX_CUDA_NC_CARRIERS": carrier,
                                         "UCX_CUDA_NC_STATS": "y",
                                         "UCX_POSIX_ERROR_HANDLING": "y",
                                         "UCX_CUDA_NC_SIM_FAULTS": ",".join(
                                             filter(None, [WAYS[way].get("UCX_CUDA_NC_SIM_FAULTS"),
                                                           f"slow:{slow}"]))}))
        if "GPUs are not slow enough" not in result.output:
            break
    assert result.status == 0 and "RIGHT" in result.output
    assert "illegal access" not in result.output
    # A message is counted when its state ends.
    assert len(re.findall("^ *send .*strided", result.output, re.M)) == 4, result.output


@pytest.mark.parametrize("way, variables", [("pull", {}), ("pipe", WAYS["pipe"]),
                                            ("slots", WAYS["slots"])], ids=["pull", "pipe", "slots"])
@pytest.mark.parametrize("fault", ["launch:2", "launch:6", "mark:3", "mark:7"])
def test_a_refused_launch_or_mark_ends_no_message(run, build, way, variables, fault):
    """Nothing was enqueued: the launch is tried again, or the bytes go another way. What was enqueued
    without a mark of its end is waited for."""
    for seed in range(1, 41 if uct.FULL else 13):
        result = run(build("matrix"), "--seed", seed, "--batches", 8, "--kinds", "g",
                     "--window", 16, "--largest", 300000, status=None,
                     env=env(uct.DIRECT, variables, {"UCX_CUDA_NC_DIRECT_THRESH": 1,
                                                     "UCX_CUDA_NC_SIM_FAULTS": fault}))
        assert "RIGHT" in result.output, f"seed {seed}, {way}"


def test_among_thousands_every_offer_is_taken_early(run, build):
    """Both ways at once: nothing overtakes an early offer or its answer, and none is dropped. A
    late offer would take a slower route."""
    result = run(build("matrix"), "--seed", 1, "--batches", 2, "--kinds", "g", "--window", 4000,
                 "--largest", 3000, "--gpus", 1, status=None,
                 env=env(uct.SMALL, {"UCX_CUDA_NC_STATS": "y"}))
    assert "RIGHT" in result.output
    told = [line for line in result.lines() if "GPU to GPU: sent" in line]
    assert len(told) == 2
    for line in told:
        sent = line[:line.index("; received")]
        early = int(re.search(r"(\d+) offers taken early", line)[1])
        assert early == sum(map(int, re.findall(r"(\d+) by", sent))) > 1000


def test_old_protocols_pack_no_more_than_the_carrier_takes(run, build):
    """UCX with assertions ends where more bytes are said to be packed: with its old protocols
    nothing is offered."""
    result = run(build("matrix"), "--seed", 40012, "--batches", 8, "--kinds", "ggch", status=None,
                 env=env(uct.DIRECT, {"UCX_PROTO_ENABLE": "n", "UCX_CUDA_NC_DIRECT_THRESH": 1,
                                      "UCX_CUDA_NC_STATS": "y"}))
    assert "RIGHT" in result.output
    assert result.output.count("cuda_nc statistics of process") == 2
    # Processes between which nothing went say nothing of it.
    sent = [line[:line.index("; received")] for line in result.lines() if "GPU to GPU: sent" in line]
    assert not any(map(int, re.findall(r"(\d+) (?:by|straight)", " ".join(sent))))


def test_many_allocations_by_turns(run, build):
    """Each is mapped at most twice, those that take the place of freed ones too."""
    numbers = [80, 79]
    result = run("mpirun", "-np", 2, build("mpi_turns"), "--memory", "sim", "--rounds", 3,
                 "--allocations", ",".join(map(str, numbers)), "--allocated", 1 << 18, status=None,
                 env=env(uct.DIRECT, {"UCX_CUDA_NC_STATS": "y", "UCX_CUDA_NC_SIM_DELAY": 0}))
    assert "wrong bytes: 0" in result.output
    mapped = [int(line.split()[-2]) for line in result.lines()
              if line.startswith("Peers' GPU memory: mapped")]
    assert len(mapped) == 2 and all(
        sum(numbers) <= times <= 2 * sum(numbers) for times in mapped)


@pytest.mark.parametrize("tls", ["cuda_nc,self", "cuda_nc,cma,self"])
def test_64_kib(run, build, tls):
    """Of its own accord UCP would send these eagerly: 64 KiB at most, with and without cma."""
    result = run("mpirun", "-np", 2, build("mpi_sizes"), "--memory", "sim", "--largest", 65536,
                 "--repeats", 20, status=None,
                 env=uct.environment(PLUGIN, {"UCX_TLS": tls, "UCX_CUDA_NC_STATS": "y"},
                                     release=uct.LAST))
    assert "wrong bytes: 0" in result.output
    told = [line.split() for line in result.lines() if line.startswith("GPU to GPU: sent")]
    assert len(told) == 2
    # "GPU to GPU: sent 480 by pull, 20 by pipe, ..."
    assert all(int(words[4]) + int(words[7]) >= 500 for words in told)
