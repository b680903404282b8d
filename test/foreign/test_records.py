"""What becomes of NIXL's tests is known where one of them ends its process."""
import os

from support import foreign, foreign_nixl, product

TESTS = """
import os, signal
import pytest

@pytest.fixture
def last_words():
    yield
    os._exit(3)

def test_right(): pass
def test_wrong(): assert 1 == 2
def test_left_out(): pytest.skip("no: GPU")
@pytest.mark.parametrize("value", ["a: b", "c d"])
def test_names(value): pass
def test_teardown(last_words): pass
def test_crash(): os.kill(os.getpid(), signal.SIGKILL)
def test_after(): pass
"""


def outcome_of(run, tmp_path, *names):
    records = tmp_path / "records"
    records.unlink(missing_ok=True)
    (tmp_path / "test_it.py").write_text(TESTS)
    run(product.PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "nixl_records",
        "--rootdir", tmp_path, *[tmp_path / name for name in names or ["test_it.py"]], status=None,
        env={**os.environ, "NIXL_RECORDS": str(records), "PYTHONPATH": str(foreign.SCRIPTS)})
    return foreign_nixl.read_records(records)


def test_a_test_that_ends_its_process(run, tmp_path):
    words, unfinished, left = outcome_of(run, tmp_path)
    assert words == {"test_it.py::test_right": "PASS", "test_it.py::test_wrong": "FAIL AssertionError",
                     "test_it.py::test_left_out": "SKIP no: GPU",
                     "test_it.py::test_names[a: b]": "PASS", "test_it.py::test_names[c d]": "PASS"}
    assert unfinished == {"test_it.py::test_teardown"}
    assert left == ["test_it.py::test_crash", "test_it.py::test_after"]
    words, unfinished, left = outcome_of(run, tmp_path, *left)
    assert (words, unfinished, left) == ({}, {"test_it.py::test_crash"}, ["test_it.py::test_after"])
    words, unfinished, left = outcome_of(run, tmp_path, *left)
    assert (words, unfinished, left) == ({"test_it.py::test_after": "PASS"}, set(), [])
