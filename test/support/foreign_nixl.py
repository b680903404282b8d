"""NIXL's own tests by its unmodified wheel, in host memory: its Python tests, and its examples that
say whether all is right; one of them is the program in C++ that the wheel brings. Each by puts and
gets, and by UCX's lists of them."""
import re
import socket
import time
import typing

from support import foreign, mpi, product, uct

FOLDER = foreign.FOLDER / "nixl"
SOURCE = FOLDER / "source"
TESTS = SOURCE / "test/python"
VERSION = uct.PACKAGES[uct.BUNDLED].partition("==")[2]
LIMIT = 120  # seconds of a test, or of a program
ROUTES = {"puts": {}, "lists": {"NIXL_UCX_SGL_ENABLE": 1}}
PORT = object()  # in a command: a free one of this machine


class Program(typing.NamedTuple):
    command: tuple
    text: str  # printed when all is right: some end with status 0 where it is not
    variables: dict = {}


EXAMPLES = SOURCE / "examples/python"
PROGRAMS = {
    "desc_perf.py": Program((TESTS / "desc_perf.py", ), "Time per desc add"),
    "prep_xfer_perf.py list": Program((TESTS / "prep_xfer_perf.py", "list"), "make_prepped_xfer:"),
    "prep_xfer_perf.py array": Program((TESTS / "prep_xfer_perf.py", "array"),
                                       "make_prepped_xfer:"),
    "query_mem_example.py": Program((EXAMPLES / "query_mem_example.py", ),
                                    "Example completed successfully"),
    # It wants to remove a variable, to exchange metadata by sockets.
    "partial_md_example.py": Program(
        (EXAMPLES / "partial_md_example.py", "--init-port", PORT, "--target-port", PORT),
        "Test Complete.", {"NIXL_ETCD_ENDPOINTS": ""}),
}
IN_CPP = "nixl_example in C++"
# Two processes, of which one reads and writes the memory of the other.
PEERS = ("basic_two_peers.py", "expanded_two_peers.py")
DONE = "Test Complete."
ITS_END = "test/python, the end of its process"


class Suite:
    """The tests in one way, with the product or without."""

    def __init__(self, wheel, way, runner, work):
        self._wheel, self._way, self._runner, self._work = wheel, way, runner, work
        self._logs = runner.log.with_suffix("")
        self._logs.mkdir(exist_ok=True)
        for old in self._logs.glob(f"*-{way}.log"):
            old.unlink()

    def run(self, only=None):
        """{test: word}, of all or of some."""
        outcome = {}
        for route, variables in ROUTES.items():
            chosen = None if only is None else [name.partition(": ")[2] for name in only
                                                if name.startswith(f"{route}: ")]
            words = self._route(route, self._environment(variables), chosen)
            outcome.update((f"{route}: {name}", word) for name, word in words.items())
        return outcome

    def says(self, text):
        """Whether an initiator of two processes has printed it, on each route."""
        logs = [self._log(name, f"{route} initiator") for name in PEERS for route in ROUTES]
        return all(log.exists() and text in log.read_text(errors="replace") for log in logs)

    def _environment(self, variables):
        # NIXL's copy of libnl crashes when a process ends that has UCX's module for InfiniBand, so
        # that no other crash at the end would be seen.
        own = {"UCX_CUDA_NC_TRANSPORT": None, "UCX_MODULES": "^ib", "UCX_PROTO_INFO": "y",
               "NIXL_LOG_LEVEL": "INFO",
               "PYTHONPATH": f"{self._wheel}:{FOLDER}/package:{foreign.SCRIPTS}"}
        return mpi.environment(own, mpi.PLUGIN if self._way != "stock" else {}, variables)

    def _log(self, name, which):
        return self._logs / f"{re.sub('[^A-Za-z0-9]+', '-', f'{name} {which} {self._way}')}.log"

    def _route(self, route, env, chosen):
        outcome = self._python_tests(route, env, chosen)
        for name, program in PROGRAMS.items():
            if chosen is None or name in chosen:
                outcome[name] = word_of(self._within(
                    name, route, (product.PYTHON, *program.command), {**env, **program.variables}),
                    program.text)
        if chosen is None or IN_CPP in chosen:
            outcome[IN_CPP] = self._in_cpp(route, env)
        for name in PEERS:
            if chosen is None or name in chosen:
                outcome[name] = self._two_processes(name, route, env)
        return outcome

    def _in_cpp(self, route, env):
        program = self._wheel / "nixl_cu13.scripts/nixl_example"
        program.chmod(0o755)
        env = {**env, "LD_LIBRARY_PATH": f"{self._wheel}/.nixl_cu13.mesonpy.libs"}
        return word_of(self._within(IN_CPP, route, (program, ), env), "Test done")

    def _within(self, name, which, command, env, limit=LIMIT):
        ports = iter(free_ports(command.count(PORT)))
        command = [next(ports) if word is PORT else word for word in command]
        return self._runner.within(limit, *command, env=env, cwd=self._work,
                                   log=self._log(name, which))

    def _two_processes(self, name, route, env):
        def command(mode, port):
            return (product.PYTHON, EXAMPLES / name, f"--mode={mode}",
                    "--ip=127.0.0.1", f"--port={port}")

        target = self._runner.start(*command("target", 0), env=env, cwd=self._work,
                                    log=self._log(name, f"{route} target"))
        try:
            port = port_of(target)
            if port is None:
                return "the target tells no port"
            word = word_of(self._within(name, f"{route} initiator", command("initiator", port),
                                        env), DONE)
            other = word_of(target.wait(LIMIT), DONE)
        finally:
            target.end()
        return word if word == other else f"initiator: {word}; target: {other}"

    def _python_tests(self, route, env, chosen):
        """All in one process; where it ends before the last test, the others in another one."""
        names = None if chosen is None else [name for name in chosen if "::" in name]
        if names == [] and ITS_END not in chosen:
            return {}
        records = self._work / "records"
        outcome, left = {}, names or []
        while True:
            records.unlink(missing_ok=True)
            result = self._within("test-python", route, (
                product.PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p",
                "nixl_records", "--rootdir", TESTS, f"--timeout={LIMIT}",
                *([TESTS / name for name in left] or [TESTS])),
                {**env, "NIXL_RECORDS": str(records)}, 10 * LIMIT)
            ended = ("no end" if result is None else "PASS" if result.status in (0, 1) else
                     f"exit status {result.status}")
            words, unfinished, left = read_records(records)
            outcome.update(words)
            outcome.update((name, f"its process: {ended}") for name in unfinished)
            if not left or not words.keys() | unfinished:
                break
        # With 1 pytest says that tests failed, which they say themselves.
        outcome[ITS_END] = ended
        return outcome


def revision():
    """The commit of NIXL's repository that its tests are of."""
    return (FOLDER / "revision").read_text().strip()[:12]


def word_of(result, text):
    """That of a program which prints the text when all is right."""
    if result is None:
        return f"no end within {LIMIT} s"
    if result.status:
        return f"exit status {result.status}"
    return "PASS" if text in result.output else "not all is right"


def free_ports(number):
    """Of this machine's loopback, each another one."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports


def port_of(target):
    """The port that a target has chosen, from its log."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        found = re.search(r"listening on port (\d+)", target.output())
        if found:
            return found[1]
        if target.wait(0.2) is not None:
            break
    return None


def read_records(path):
    """({test: word}, tests that have begun and not ended, tests that have not begun)."""
    words, begun, ended, all_of_them = {}, set(), set(), []
    for line in path.read_text().splitlines() if path.exists() else ():
        word, name, what = line.split("\t")
        if word == "TEST":
            all_of_them.append(name)
        elif word == "RUN":
            begun.add(name)
        elif word == "END":
            ended.add(name)
        else:
            words.setdefault(name, set()).add(f"{word} {what}".rstrip())
    unfinished = begun - ended
    return ({name: ", ".join(sorted(found)) for name, found in words.items()
             if name not in unfinished}, unfinished,
            [name for name in all_of_them if name not in begun])
