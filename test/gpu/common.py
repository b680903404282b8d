"""What the cases share. A case is a program that prints what it does and ends with a line "PASS",
"FAIL: why" or "SKIP: why", and with exit status 0, 1 or 77. Nothing waits without a limit."""
import argparse
import contextlib
import fcntl
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support import mpi, product, uct  # noqa: E402
from support.processes import processes_of  # noqa: E402

STATUS = {"PASS": 0, "FAIL": 1, "SKIP": 77}
CANNOT_RUN = 77  # of a program, too
HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = product.LOCAL / "gpu-tests"
# Rank 1's memory is on another GPU where there is one.
TRANSPORT = {**mpi.PLUGIN, **mpi.TRANSPORT}
# Messages that come seldom are orders too, and are counted.
ORDERS = {"UCX_CUDA_NC_MOVER_ALWAYS": "y", "UCX_CUDA_NC_STATS": "y"}


class Ended(Exception):
    def __init__(self, word, why=""):
        super().__init__(f"{word}: {why}" if why else word)
        self.word = word


def fail_if(condition, why):
    if condition:
        raise Ended("FAIL", why)


def skip_if(condition, why):
    if condition:
        raise Ended("SKIP", why)


def arguments(**extra):
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--backend", choices=("cuda", "sim"), default="cuda",
                        help="sim: as far as the simulated GPU can tell")
    parser.add_argument("--seconds", type=int, default=60, help="of cases that go on for a time")
    for name, default in extra.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


def gpus():
    """Their number."""
    try:
        listing = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, text=True,
                                 stderr=subprocess.DEVNULL, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return sum(line.startswith("GPU ") for line in listing.stdout.splitlines())


def kind(backend):
    """What gpu-accidents calls the memory."""
    return "sim" if backend == "sim" else "malloc"


def need(backend, simulated=False, number=1):
    skip_if(backend == "sim" and not simulated, "the simulated GPU has nothing of this")
    skip_if(backend == "cuda" and gpus() < number, f"{number} GPU(s) wanted, {gpus()} here")


def environment(backend, *groups):
    variables = mpi.environment(*groups)
    variables["UCX_CUDA_NC_GPU"] = backend
    if backend == "cuda":
        variables.pop("UCX_CUDA_NC_SIM_DELAY", None)
    return variables


class Result:
    def __init__(self, status, output):
        self.status, self.output = status, output

    def must_be_right(self):
        skip_if(self.status == CANNOT_RUN or "SKIPPED" in self.output,
                (self.output.strip().splitlines() or ["it cannot run here"])[-1])
        wrong = [line.strip() for line in self.output.splitlines() if "WRONG" in line]
        fail_if(wrong, wrong[0] if wrong else "")
        fail_if("illegal access" in self.output, "a kernel touched memory that is not there")
        fail_if(self.status != 0, f"exit status {self.status}")

    def must_have_had(self, options, what, told, why):
        """Under ORDERS the statistics of the processes tell of some, unless there are no movers."""
        number = sum(map(int, re.findall(rf"(\d+) {told}", self.output)))
        print(f"{number} {what}", flush=True)
        # Ranks that share a GPU have none there.
        have_movers = options.backend == "sim" or gpus() >= getattr(options, "ranks", 2)
        fail_if(number == 0 and have_movers, why)

    def must_have_had_orders(self, options):
        self.must_have_had(options, "orders to movers", "orders to a mover",
                           "no message became an order to a mover")

    def must_have_had_sets(self, options):
        self.must_have_had(options, "orders in sets", "sides in sets",
                           "no messages that were ready together shared a launch")

    def must_have_ended(self):
        """Well or not, but neither by a crash nor with wrong bytes; and in the middle of traffic."""
        skip_if("SKIPPED" in self.output, "the driver or the machine lacks something")
        fail_if("WRONG" in self.output, "wrong bytes")
        fail_if("HANG" in self.output, "a process hangs")
        fail_if("Segmentation fault" in self.output, "a crash")
        told = [int(number) for number in re.findall(r"after (\d+) messages: ", self.output)]
        fail_if(not any(told), "no rank says after how many messages the context was lost")


def run(*command, env, limit, cwd=None):
    """A command in a session of its own, which is killed as a whole after so many seconds."""
    command = [str(word) for word in command]
    print("$", shlex.join(command), flush=True)
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   env=env, cwd=cwd, start_new_session=True)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        for process_id in [process.pid, *processes_of(process.pid)]:
            try:
                os.kill(process_id, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.wait(30)
        output.seek(0)
        text = output.read()
    print("\n".join(text.splitlines()[-40:]), flush=True)
    fail_if(status is None, f"no end within {limit} s")
    return Result(status, text)


@contextlib.contextmanager
def building():
    """One case at a time builds: several may be started side by side."""
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    with open(PROGRAMS / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make(*words):
    with building():
        result = run("make", "-s", *words, env=product.environment(), limit=600)
    fail_if(result.status != 0, "a program cannot be built")


def cuda_headers():
    """The folder of CUDA, or null where there is none to compile with."""
    cuda = product.LOCAL / "cuda_dir"
    directory = cuda.read_text().strip() if cuda.exists() else "/usr/local/cuda"
    return directory if pathlib.Path(directory, "include/cuda.h").exists() else None


def built(name):
    """Path of a program of programs.mk, built where it is not up to date."""
    directory = cuda_headers()
    skip_if(directory is None, "no cuda.h is here")
    make("-f", HERE / "programs.mk", "MPICXX=mpicxx", f"CUDA={directory}", f"OUTPUT={PROGRAMS}",
         PROGRAMS / name)
    return PROGRAMS / name


def accidents():
    return built("gpu-accidents")


def random_types():
    make("-f", product.ROOT / "test/mpi/programs.mk", "MPICXX=mpicxx", f"OUTPUT={PROGRAMS}",
         PROGRAMS / "random-types")
    return PROGRAMS / "random-types"


def guards():
    make("-f", product.ROOT / "test/mpi/programs.mk", "MPICXX=mpicxx", f"OUTPUT={PROGRAMS}",
         PROGRAMS / "guards-test")
    return PROGRAMS / "guards-test"


def uct_program(name):
    """Path of a program of test/uct, built anew: another case may be running the one that is
    there."""
    path, command = uct.PROGRAMS[name]
    new = path.with_name(f"{path.name}.{os.getpid()}")
    with building():
        path.parent.mkdir(parents=True, exist_ok=True)
        result = run(*(new if word == path else word for word in command),
                     env=product.environment(), limit=600)
        fail_if(result.status != 0, "a program cannot be built")
        os.replace(new, path)
    return path


def uct_environment(backend, *groups):
    """For these programs, which load UCX themselves."""
    return environment(backend, TRANSPORT, {
        "LD_LIBRARY_PATH": f"{product.ucx()}/lib:{product.INSTALL}/lib"}, *groups)


def survive(accident):
    """The accident (of gpu-accidents) in the middle of traffic: all processes end, and the next job is
    well."""
    options = arguments(count=400)
    need(options.backend)
    env = environment(options.backend, TRANSPORT)
    program = accidents()
    run("mpirun", "-np", 2, program, accident, "--count", options.count, env=env,
        limit=180).must_have_ended()
    run("mpirun", "-np", 2, program, "messages", env=env, limit=180).must_be_right()


def main(case):
    """Runs the case and ends the process."""
    try:
        case()
        word, text = "PASS", "PASS"
    except Ended as ended:
        word, text = ended.word, str(ended)
    except Exception as error:  # the last line says so all the same
        word, text = "FAIL", f"FAIL: {type(error).__name__}: {error}"
    print(text, flush=True)
    sys.exit(STATUS[word])
