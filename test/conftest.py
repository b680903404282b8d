"""What all tests share. Each test has a time limit: LIMIT of its module, in seconds, or that of
@pytest.mark.limit. `run` runs commands within it."""
import contextlib
import fcntl
import os
import re
import sys
import time

import pytest

from support import product
from support.runner import Runner

FULL_SEED = "CUDA_NC_FULL_SEED"
# The tables of tests differ by it, so it is known before the next module is read: pytest reads the
# conftest.py of named folders before it tells of options. The workers of xdist inherit it.
if "--full" in sys.argv:
    os.environ["CUDA_NC_FULL"] = "1"
    os.environ.setdefault(FULL_SEED, str(int(time.time())))


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="larger counts, new random types")
    parser.addoption("--outcomes", metavar="FILE",
                     help='write "PASS name", "FAIL name", "SKIP name: reason" to this file')


def pytest_configure(config):
    config.addinivalue_line("markers", "limit(seconds): the test's time limit")
    config.addinivalue_line("markers", "timed: compares times with --full: runs when nothing else does")
    if config.getoption("--outcomes") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcomes(config.getoption("--outcomes")))


def pytest_report_header():
    seed = os.environ.get("CUDA_NC_SEED") or os.environ.get(FULL_SEED)
    return f"product: {product.INSTALL}" + (f"; seed {seed}" if seed else "")


class Outcomes:
    """Writes a line for each test when it is over, and for each subtest."""

    def __init__(self, path):
        self._file = open(path, "w", buffering=1)
        self._subtests = {}  # of a test: whether one has failed

    def pytest_runtest_logreport(self, report):
        context = getattr(report, "context", None)
        if context is not None:
            failed = self._subtests.get(report.nodeid, False) or report.failed
            self._subtests[report.nodeid] = failed
            self._write(report, f"{report.nodeid}[{context.msg}]")
        elif report.when == "call" and report.nodeid in self._subtests:
            # The subtests are the tests; what has failed beside them counts as well.
            if report.failed and not self._subtests[report.nodeid]:
                self._write(report, report.nodeid)
        elif report.when == "call" or report.outcome != "passed":
            self._write(report, report.nodeid)

    def pytest_collectreport(self, report):
        if report.failed:
            self._write(report, report.nodeid or "collection")

    def _write(self, report, name):
        if report.outcome == "skipped":
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            reason = str(reason).removeprefix("Skipped: ").replace("\n", " ")
            self._file.write(f"SKIP {name}: {reason}\n")
        else:
            self._file.write(f"{'FAIL' if report.failed else 'PASS'} {name}\n")


@pytest.fixture(scope="session")
def full(request):
    return request.config.getoption("--full")


@pytest.fixture
def run(request):
    marker = request.node.get_closest_marker("limit")
    module = request.node.module
    limit = marker.args[0] if marker else getattr(module, "LIMIT", 120)
    suite = request.node.path.parent.name
    name = re.sub(r"[^\w.,=+-]", "_", f"{request.node.path.stem}.{request.node.name}")
    env = getattr(module, "ENVIRONMENT", None)
    runner = Runner(limit, product.LOGS / suite / f"{name}.log", env() if env else None)
    yield runner
    runner.end()


@contextlib.contextmanager
def only_one(name):
    """Of all workers of xdist one at a time."""
    product.LOGS.mkdir(parents=True, exist_ok=True)
    with open(product.LOGS / f".{name}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def one_at_a_time():
    return only_one


@pytest.fixture(scope="session")
def fetch(one_at_a_time):
    """Function that makes sure that a release of UCX is there, from PyPI, and returns its
    directory."""
    from support import uct  # not before --full is known

    def fetch(release):
        directory = uct.RELEASES / release
        with one_at_a_time("releases"):
            if (directory / ".complete").exists():
                return directory / "libucx"
            run = Runner(uct.LIMIT, product.LOGS / "uct" / f"fetch-{release}-{os.getpid()}.log",
                         uct.environment())
            run("bash", "-ec", uct.FETCH, "-", directory, uct.package(release), product.PYTHON)
        return directory / "libucx"

    return fetch


@pytest.fixture(scope="session")
def nixl(one_at_a_time):
    """The wheel, unpacked and unmodified."""
    from support import uct
    folder = product.LOCAL / "nixl"
    with one_at_a_time("nixl"):
        if not (folder / ".complete").exists():
            uct_fetch = (f'rm -rf "{folder}" && mkdir -p "{folder}" && cd "{folder}" && '
                         f'"{product.VENV}/bin/python3" -m pip download -q '
                         f'--disable-pip-version-check --no-deps -d . {uct.PACKAGES[uct.BUNDLED]} '
                         f'&& "{product.VENV}/bin/python3" -m zipfile -e ./*.whl . && '
                         'rm -f ./*.whl && touch .complete')
            assert os.system(uct_fetch) == 0, "NIXL's wheel cannot be fetched"
    return folder
