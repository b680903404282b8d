"""mpi4py's own test suite, and MPICH's tests of datatypes and point-to-point messages, give the same
results with the product as without: test by test, for each MPI. So do NIXL's tests, by its wheel.

python3 -m pytest test/foreign --full -n 2      (-k "programs and mpich" for one)
test/foreign/table.py                           what the last run found, as a table

A difference is looked at again: where MPI alone says the same in one of a few runs, it varies by
itself. All outcomes stay in .local/foreign/results."""
import concurrent.futures
import os

import pytest

from support import foreign, foreign_nixl, product
from support.runner import Runner

LIMIT = 6 * 3600
# Both Open MPI 4 run the same programs.
PROGRAMS = {"debian4": "ompi4"}
# Most programs are two ranks that never sleep.
AT_ONCE = max(1, (os.cpu_count() or 1) // 3)


@pytest.fixture
def library(request, one_at_a_time):
    """(name, library) with its MPI in place."""
    name = request.param
    chosen = foreign.LIBRARIES[name]
    if name == "mpich":
        with one_at_a_time("programs"):
            _script("need-mpich")("bash", "-ec", '. "$0/contrib/lib.sh" && need_mpich',
                                  product.ROOT)
    elif name in ("ompi4", "debian4") and not foreign.mpi.have_openmpi4():
        pytest.skip("no system Open MPI 4 is installed")
    return name, chosen


by_library = pytest.mark.parametrize("library", foreign.LIBRARIES, indirect=True)


def _script(name):
    return Runner(1800, product.LOGS / "foreign" / f"{name}.log", product.environment())


def compare(suite, name, title, command, outcomes, again):
    """name, title: the library, in files and in tables. outcomes: {way: {test: word}}.
    again(way, tests): such an outcome once more, of these tests."""
    tests = {test for outcome in outcomes.values() for test in outcome}
    words = {test: {way: [outcome.get(test, "not run")] for way, outcome in outcomes.items()}
             for test in sorted(tests)}
    for _ in range(foreign.AGAIN):
        unclear = [test for test in words if foreign.verdict(words[test]) == "different"]
        for way in outcomes if unclear else ():
            outcome = again(way, unclear)
            for test in unclear:
                words[test][way].append(outcome.get(test, "not run"))
    foreign.keep(suite, name, title, command, words)
    different = {test: found for test, found in words.items()
                 if foreign.verdict(found) == "different"}
    assert len(tests) > 50
    assert not different


@by_library
def test_programs(run, one_at_a_time, library):
    name, chosen = library
    built = PROGRAMS.get(name, name)
    with one_at_a_time("foreign-programs"):
        _script(f"fetch-{built}")("bash", foreign.SCRIPTS / "fetch.sh", "mpich-tests", built,
                                  chosen.compiler)
    build = foreign.FOLDER / f"mpich-tests-{built}"
    programs = {program.name: program for program in foreign.programs(build)}

    def word(way, program):
        return foreign.run_program(chosen, way, program, run)

    outcomes = {way: {} for way in foreign.WAYS}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        words = {(test, way): pool.submit(word, way, program)
                 for test, program in programs.items() for way in foreign.WAYS}
        for (test, way), found in words.items():
            outcomes[way][test] = found.result()

    def again(way, tests):
        return {test: word(way, programs[test]) for test in tests}

    compare("MPICH's tests", name, chosen.title, "each program of datatype and pt2pt", outcomes,
            again)


@pytest.mark.parametrize("ranks", [2])
@by_library
def test_mpi4py(run, one_at_a_time, tmp_path, library, ranks):
    name, chosen = library
    with one_at_a_time("mpi4py"):
        _script("fetch-mpi4py")("bash", foreign.SCRIPTS / "fetch.sh", "mpi4py")

    def once(way, tests=None):
        return foreign.run_mpi4py(chosen, way, ranks, run, tmp_path, tests)

    compare(f"mpi4py, {ranks} ranks", name, chosen.title, f"main.py with {ranks} ranks",
            {way: once(way) for way in foreign.WAYS}, once)


def test_nixl(run, one_at_a_time, nixl, tmp_path):
    version = foreign_nixl.VERSION
    with one_at_a_time("foreign-nixl"):
        _script("fetch-nixl")("bash", foreign.SCRIPTS / "fetch.sh", "nixl", version)
    suites = {way: foreign_nixl.Suite(nixl, way, run, tmp_path) for way in ("stock", "default")}
    outcomes = {way: suite.run() for way, suite in suites.items()}
    # Else nothing is compared.
    assert suites["default"].says("cuda_nc/host") and not suites["stock"].says("cuda_nc")
    assert list(outcomes["stock"].values()).count("PASS") > 60
    compare("NIXL", version, f"NIXL {version}, its UCX 1.23",
            f"Python tests and examples of {foreign_nixl.revision()}", outcomes,
            lambda way, tests: suites[way].run(tests))
