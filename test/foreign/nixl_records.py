"""pytest's plugin for NIXL's own tests. A line for each thing that becomes of a test is written to the
file that the environment's NIXL_RECORDS names, its words separated by tabs: TEST and the name for all
that are to run, RUN, then PASS, FAIL or SKIP with what is to be said of it, and END once its fixtures
are torn down."""
import os

import pytest

_file = open(os.environ["NIXL_RECORDS"], "a", buffering=1)


def _write(word, name, what=""):
    # All of it in one line.
    _file.write("\t".join([word, name, " ".join(what.split())]) + "\n")


def pytest_collection_finish(session):
    for item in session.items:
        _write("TEST", item.nodeid)


def pytest_runtest_logstart(nodeid):
    _write("RUN", nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped:
        _write("SKIP", item.nodeid, str(call.excinfo.value))
    elif report.failed:
        _write("FAIL", item.nodeid, call.excinfo.typename)
    elif report.when == "call":
        _write("PASS", item.nodeid)
    return report


def pytest_runtest_logfinish(nodeid):
    _write("END", nodeid)
