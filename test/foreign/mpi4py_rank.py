"""One rank of mpi4py's own test suite. What becomes of each test is written to RECORDS/RANK.

usage: mpirun -np N python3 mpi4py_rank.py TESTS RECORDS LIMIT [but|only FILE]

TESTS is mpi4py's folder of tests. FILE has the tests and modules that are left out, or that are run
alone, one a line. A test that takes longer than LIMIT seconds ends its process, after its stack was printed."""
import faulthandler
import os
import sys
import time
import unittest

tests, records, limit, *chosen = sys.argv[1:]
only = chosen[:1] == ["only"]
listed = set(open(chosen[1]).read().split()) if chosen else set()
sys.dont_write_bytecode = True
sys.path.insert(0, tests)
main = __import__("main")


class Records(unittest.TextTestResult):
    """A line "SECONDS RUN name" when a test begins, "SECONDS WORD name: what" when it ends."""

    _file = None

    def _write(self, word, test, what=""):
        if self._file is None:
            from mpi4py import MPI
            rank = MPI.COMM_WORLD.Get_rank()
            self._file = open(os.path.join(records, str(rank)), "a", buffering=1)
        self._file.write(f"{time.monotonic():.2f} {word} {test.id()}{': ' if what else ''}{what}\n")

    def startTest(self, test):
        faulthandler.dump_traceback_later(float(limit), exit=True)
        self._write("RUN", test)
        super().startTest(test)

    def stopTest(self, test):
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)

    def addSuccess(self, test):
        self._write("PASS", test)
        super().addSuccess(test)

    def addError(self, test, err):
        self._write("FAIL", test, err[0].__name__)
        super().addError(test, err)

    def addFailure(self, test, err):
        self._write("FAIL", test, err[0].__name__)
        super().addFailure(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._write("FAIL", test, err[0].__name__)
        super().addSubTest(test, subtest, err)

    def addSkip(self, test, reason):
        self._write("SKIP", test, reason.replace("\n", " "))
        super().addSkip(test, reason)


def is_listed(case, name):
    """By itself, or with its module."""
    return not listed.isdisjoint(
        {case.__module__, f"{case.__module__}.{case.__qualname__}.{name}"})


def names_left(loader, case, original=main.TestLoader.getTestCaseNames):
    return [name for name in original(loader, case)
            if is_listed(case, name) == only]


main.TestLoader.getTestCaseNames = names_left
main.TestProgram(module=None, argv=["main.py", "-q"],
                 testRunner=unittest.TextTestRunner(resultclass=Records, verbosity=0))
