"""nc_perftest p2p: messages between two processes."""
import json
import os
import re
import signal
import socket
import time

import pytest

from support.perftest import PROGRAM, job
from support.processes import children_of

SHORT = ("-m", "host", "--sizes", 8, "-l", "vector-8", "--seconds", 0.01)


def free_port():
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def wait_until(true, seconds=20):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.05)


@pytest.fixture
def server(run, tmp_path):
    """Starts the side that waits for a client."""

    def server(port, *arguments):
        return run.start(PROGRAM, "p2p", "-p", port, *arguments, env=job(),
                         log=tmp_path / "server.txt")

    return server


@pytest.mark.parametrize("memory", ["host", "gpu", "gpu,host"])
def test_measures_verified_messages(perftest, tmp_path, memory):
    perftest.p2p("--fork", "-m", memory, "--sizes", "64,100K", "-l", "vector-8", "-l", "triangle",
                 "-l", "indexed:1K,1,100,1,7", "-t", "latency,bandwidth", "--bidir", "--window", 4,
                 "--seconds", 0.02, "--json", tmp_path / "p2p.json", "--csv", tmp_path / "p2p.csv")
    assert len((tmp_path / "p2p.csv").read_text().splitlines()) == 31
    file = json.loads((tmp_path / "p2p.json").read_text())
    rows = file["rows"]
    assert len(rows) == 30 and file["library"].startswith("UCX")
    assert all(row["verified"] and row["time"]["min_us"] > 0 and row["ratio"] > 0 for row in rows)
    assert {row["transport"] for row in rows} == {"y", "n"}
    assert {row["test"] for row in rows} == {"latency", "bandwidth", "bidir"}


def test_names_a_gpu_that_is_not_there(perftest):
    perftest.p2p_fails_with("there is no GPU 7: 2 simulated", "--fork", "--gpus", "0,7", "-m",
                            "gpu", "--sizes", 8, "-l", "vector-8")


def test_carriers_that_are_not_there_are_told_once(perftest):
    said = perftest.p2p("--fork", "--transport", "y", *SHORT, status=None,
                        env=job(UCX_CUDA_NC_CARRIERS="pigeon,owl")).output
    # By each side, unless the other has ended first.
    told = [line for line in said.splitlines()
            if re.search(r"UCX_CUDA_NC_CARRIERS=pigeon,owl: .*posix", line)]
    assert 1 <= len(told) <= 2


def test_uses_the_transport_or_says_why_not(perftest):
    said = perftest.p2p("--fork", "--transport", "y", *SHORT).output
    assert re.search("^# with the transport cuda_nc: cuda_nc/", said, re.M)
    perftest.p2p_fails_with("does UCX_TLS leave it out", "--fork", "--transport", "y", "-m", "host",
                            "--sizes", 8, "-l", "vector-8", env=job(UCX_TLS="posix,self"))


@pytest.mark.parametrize("what", ["byte", "gap"])
def test_sees_wrong_bytes(perftest, what):
    perftest.p2p_fails_with("WRONG", "--fork", "-m", "gpu", "--transport", "y", "--sizes", "64K",
                            "-l", "vector-64", "--inject", what)


def test_client_and_server(perftest, run, server):
    port = free_port()
    waiting = server(port, "-m", "host")
    perftest.p2p("127.0.0.1", "-p", port, *SHORT)
    run.finish(waiting)


def test_server_outlives_strangers(perftest, run, server):
    port = free_port()
    waiting = server(port, "-m", "host", "--timeout", 20)
    wait_until(lambda: "waiting" in waiting.output())
    for text in (b"GET / HTTP/1.0\r\n\r\n", b""):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as one:
            one.sendall(text)
    perftest.p2p("127.0.0.1", "-p", port, *SHORT)
    said = run.finish(waiting)
    assert said.count("waiting for the next client") == 2


def test_waits_for_nobody_without_end(perftest):
    port = free_port()
    perftest.p2p_fails_with("no client has come", "-p", port, "--timeout", 0.2)
    perftest.p2p_fails_with("no server at", "127.0.0.1", "-p", port, "--timeout", 0.2, "-l",
                            "vector-8")
    said = perftest.p2p("--fork", "--timeout", 0.1, "-m", "gpu", "--sizes", "256M", "-l",
                        "vector-8", status=None).output
    assert "illegal access" not in said and "is gone" not in said


def test_says_that_the_server_is_silent_or_gone(perftest, run):
    # A server that takes the connection and says nothing, then one that hangs up.
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        listening.settimeout(60)
        perftest.p2p_fails_with("says nothing", "127.0.0.1", "-p", port, "--timeout", 1, "-l",
                                "vector-8", "--transport", "n")
        listening.accept()[0].close()
        client = run.start(PROGRAM, "p2p", "127.0.0.1", "-p", port, "--timeout", 10, "-l",
                           "vector-8", "--transport", "n", env=job())
        listening.accept()[0].close()
        said = run.finish(client, status=None)
    assert said.status != 0 and "is gone" in said.output


def test_ends_when_the_other_side_is_killed(run, server, tmp_path):
    port = free_port()
    waiting = server(port)
    client = run.start(PROGRAM, "p2p", "127.0.0.1", "-p", port, "-m", "host", "--sizes", 8, "-l",
                       "vector-8", "--transport", "y", "--seconds", 100, "-n", 1000000, env=job(),
                       log=tmp_path / "client.txt")
    # Until the server's side of the plan runs.
    wait_until(lambda: re.search("^(latency|test)", client.output(), re.M))
    # The server runs the plan in a process of its own.
    side = children_of(waiting.pid)
    os.kill(side[0] if side else waiting.pid, signal.SIGKILL)
    said = run.finish(client, status=1)
    assert "the other process is gone" in said.output
    assert "ended by signal 9" in run.finish(waiting, status=None).output


def test_says_what_is_wrong_with_messages(perftest):
    for text, *arguments in [
            ("neither a known layout", "-l", "nonsense"),
            ("there is no set", "-s", "nonsense"),
            ("is not a range", "--sizes", "64:8"),
            ("takes no HOST", "localhost"),
            ("at most two values", "-m", "host,host,gpu"),
            ("at most two values", "--gpus", "0,1,0"),
            ("no managed memory", "-m", "managed", "-l", "vector-8", "--sizes", "8"),
            ("no virtual memory", "-m", "virtual", "-l", "vector-8", "--sizes", "8")]:
        perftest.p2p_fails_with(text, "--fork", *arguments)
    if not os.path.exists("/dev/nvidiactl"):
        perftest.p2p_fails_with("there is no GPU", "--fork", "-m", "gpu", "-l", "vector-8",
                                "--sizes", 8, env=job(gpu="cuda"))
