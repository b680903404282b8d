"""nc_perftest pack, compare and tune; its pictures."""
import json
import re

import pytest

from support import product
from support.perftest import NC_INFO, PROGRAM, job, plain, result_file, rows_of

PLOT = product.ROOT / "contrib/plot/perftest_plot.py"
TIMELINE = product.ROOT / "contrib/timeline.py"


@pytest.mark.parametrize("memory", ["host", "gpu", "pinned"])
def test_measures_verified_layouts(perftest, tmp_path, memory):
    perftest("pack", "--set", "small", "-d", "pack,unpack,copy", "-m", memory, "-n", 2, "-b", 2,
             "--json", tmp_path / "a.json", "--csv", tmp_path / "a.csv")
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 64
    rows = rows_of(tmp_path / "a.json")
    assert len(rows) == 63
    assert all(row["verified"] and row["time"]["min_us"] > 0 for row in rows)


@pytest.fixture
def application_layouts(perftest):
    """Astaroth's lie in a GiB each: boxes of 32^3 in place of theirs of 256^3."""
    listed = perftest("pack", "--list").output
    listed = re.search(r"^applications:$(.*?)^messages:", listed, re.M | re.S)[1]
    names = [name for name in re.findall(r"^  (\S+) ", listed, re.M)
             if not name.startswith("Astaroth_")]
    for halo in ("32x32x3", "32x3x32", "3x32x32", "32x3x3", "3x3x3"):
        box = f"subarray:8,38x38x38,{halo},3x3x3"
        names.append(f"parts:0={box};438976={box};877952={box}")
    return names


@pytest.mark.parametrize("memory", ["host", "gpu"])
def test_verifies_layouts_of_applications(perftest, tmp_path, application_layouts, memory):
    assert len(application_layouts) == 23
    perftest("pack", *[f"-l{name}" for name in application_layouts], "-d", "pack,unpack", "-m",
             memory, "-n", 1, "-b", 1, "--json", tmp_path / "a.json")
    rows = rows_of(tmp_path / "a.json")
    assert len(rows) == 46 and all(row["verified"] for row in rows)


def test_measures_layouts_of_several_sizes(perftest, run, tmp_path):
    perftest("pack", "-l", "vector:*,8,16", "-l", "small-off-1", "--sizes", "64,1K,100K", "-m",
             "host", "-n", 2, "-b", 50, "--json", tmp_path / "sizes.json")
    rows = rows_of(tmp_path / "sizes.json")
    assert [row["bytes"] for row in rows if row["direction"] == "pack"] == [64, 12288, 1024, 102400]
    assert all(row["verified"] and row["sector_ratio"] > 0 for row in rows)
    run(product.PYTHON, PLOT, tmp_path / "sizes.json", "--output", tmp_path / "packed")
    for picture in ("packed-pack.png", "packed-pack-sizes.png"):
        assert (tmp_path / picture).stat().st_size > 0


WRONG_OPTIONS = [
    ("give --layout or --set", "pack"),
    ("neither a known layout", "pack -l nonsense"),
    ("nc_perftest: layout vector:1:", "pack -l vector:1"),
    ("a layout of any size", "pack -l vector-8"),
    ("is not a range", "pack -l vector-8 --sizes 64:8"),
    ("standard", "pack --set nonsense"),
    ("there is no GPU 9", "pack -l vector:1,8,8 --device 9"),
    ("", ""),
    ("", "pack -l vector:1,8,8 -n 0"),
    ("", "pack -l vector:1,8,8 -d sideways"),
    ("", "tuna"),
]


@pytest.mark.parametrize("text, arguments", WRONG_OPTIONS,
                         ids=[arguments or "nothing" for _, arguments in WRONG_OPTIONS])
def test_says_what_is_wrong_with_options(perftest, text, arguments):
    perftest.fails_with(text, *arguments.split())


@pytest.fixture
def output_is_missed(run):
    """One message and status 1 where a program's output goes nowhere."""

    def output_is_missed(*command, env=None):
        for target in ("&-", "/dev/full"):
            said = run("bash", "-c", f'"$@" >{target}', "-", *command, env=env or plain(), status=1)
            assert len(said.lines()) == 1
        assert "could not be written" in said.output

    return output_is_missed


def test_output_that_nobody_gets_is_an_error(output_is_missed, tmp_path):
    one, two = result_file(tmp_path / "one.json", 10), result_file(tmp_path / "two.json", 10)
    output_is_missed(PROGRAM, "pack", "-l", "vector:1K,8,16", "-n", 2)
    output_is_missed(PROGRAM, "pack", "--list")
    output_is_missed(PROGRAM, "--help")
    output_is_missed(PROGRAM, "compare", "--all", one, two)
    output_is_missed(PROGRAM, "p2p", "--fork", "-m", "host", "--sizes", 8, "-l", "vector-8",
                     "--seconds", 0.01, env=job())
    output_is_missed(NC_INFO)
    output_is_missed(NC_INFO, "--settings")


def test_compare_says_what_is_slower(perftest, tmp_path):
    old = result_file(tmp_path / "old.json", 10)
    same = result_file(tmp_path / "same.json", 10.1)
    slow = result_file(tmp_path / "slow.json", 20)
    broken = tmp_path / "broken.json"
    broken.write_text("SLOWER")
    assert "1 same" in perftest("compare", old, same).output
    assert "1 faster" in perftest("compare", slow, old).output
    assert "SLOWER" in perftest("compare", old, slow, status=1).output
    perftest("compare", old, slow, "--threshold", 150)
    perftest("compare", old, "/no/such/file", status=2)
    perftest("compare", broken, old, status=2)


def test_results_are_compared_and_drawn(perftest, run, tmp_path):
    drawn = tmp_path / "drawn.json"
    perftest.p2p("--fork", "-m", "host", "--sizes", "8,4K", "-l", "vector-8", "-l", "triangle",
                 "-t", "latency,bandwidth", "--transport", "n", "--seconds", 0.01, "--json", drawn)
    assert "8 same" in perftest("compare", "--all", drawn, drawn).output
    run(product.PYTHON, PLOT, drawn, drawn, "--label", "a", "--label", "b", "--output",
        tmp_path / "picture")
    for picture in ("picture-latency.png", "picture-bandwidth.png"):
        assert (tmp_path / picture).stat().st_size > 0
    assert run(product.PYTHON, PLOT, tmp_path / "none", "--output", "x", status=None).status != 0


@pytest.fixture
def script_fails_with(run):
    """One line and status 1."""

    def script_fails_with(text, *command, to="/dev/null"):
        with open(to, "w") as stdout:
            said = run(product.PYTHON, *command, stdout=stdout, status=1)
        assert len(said.lines()) == 1 and text in said.output

    return script_fails_with


def test_pictures_that_cannot_be_drawn_are_told_in_a_sentence(run, script_fails_with, tmp_path):
    events = []
    for number, size, begin, end in ((1, 4096, 0, 1), (2, 8192, 2, 4)):
        one = {"name": "send", "id": f"0x{number}", "pid": 1}
        events += [{**one, "ph": "b", "ts": begin, "args": {"bytes": size}},
                   {**one, "ph": "e", "ts": end}]
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"traceEvents": events}))
    assert re.search("0.0 to *1.0  send", run("python3", TIMELINE, "-b", "4K", trace).output)
    assert re.search("0.0 to *2.0  send", run("python3", TIMELINE, trace).output)
    script_fails_with("there are: 4096, 8192", TIMELINE, "-b", 7, trace)
    script_fails_with("cannot be written", TIMELINE, "-o", "/no/a.png", trace)
    script_fails_with("cannot be drawn", TIMELINE, "-o", tmp_path / "a.xyz", trace)
    (tmp_path / "list.json").write_text("[]")
    script_fails_with("not a trace", TIMELINE, tmp_path / "list.json")
    script_fails_with("No space left", TIMELINE, trace, to="/dev/full")
    plot = tmp_path / "plot.json"
    plot.write_text(json.dumps({"rows": [{"layout": "v", "direction": "pack", "ratio": 1,
                                          "time": {"median_us": 1}}]}))
    script_fails_with("cannot be written", PLOT, plot, "--output", "/no/a")
    script_fails_with("No space left", PLOT, plot, "--output", tmp_path / "a", to="/dev/full")


@pytest.fixture
def tune(perftest, tmp_path):
    """nc_perftest tune with a cache directory of the test's own: tmp_path / "none"."""

    def tune(*arguments, status=0):
        env = plain(XDG_CACHE_HOME=tmp_path / "none")
        return perftest("tune", *arguments, env=env, status=status)

    return tune


@pytest.mark.parametrize("gpu", [pytest.param("sim", marks=pytest.mark.limit(40)),
                                 pytest.param("none", marks=pytest.mark.limit(20))])
def test_tune_measures_host_and_simulated_gpus(perftest, run, tmp_path, gpu):
    env = plain(XDG_CACHE_HOME=tmp_path / "cache", UCX_CUDA_NC_GPU=gpu)
    said = perftest("tune", "--seconds", 15, "--check", "-s", "small", "--json",
                    tmp_path / "check.json", env=env).output
    # Progress is told as well.
    assert re.search(r"(^|[\r\n]) *0%  ", said)
    assert re.search("^# written: ", said, re.M)
    assert gpu == "none" or re.search("^  kernel rules: ", said, re.M)
    assert re.search("^# predictions: .* of 42 ", said, re.M)
    [file] = (tmp_path / "cache/ucx-cuda-nc").glob(f"*-{gpu}.json")
    profile = json.loads(file.read_text())
    assert [len(one["rules"]) for one in profile["gpus"]] == ([23, 23] if gpu == "sim" else [])
    assert len(profile["host_moves"]["figures"]) > 10
    assert len(json.loads((tmp_path / "check.json").read_text())) == 42
    explained = run(NC_INFO, "--explain", "vector:*,8,16", "64K", env=env).output
    assert re.search(rf"^figures  *measured on .*{re.escape(str(file))}", explained, re.M)


def test_tune_writes_only_what_it_is_told(perftest, tune, tmp_path):
    assert "nothing was written" in tune("--dry-run", "--seconds", 0.5).output
    assert not (tmp_path / "none").exists()
    assert "steps left out" in tune("--seconds", 0.5, "-o", tmp_path / "here.json").output
    assert (tmp_path / "here.json").stat().st_size > 0 and not (tmp_path / "none").exists()
    assert not list(tmp_path.glob("here.json.*"))  # a temporary file
    assert tune("--seconds", 0.5, "-o", "/proc/none/here.json", status=None).status != 0
    perftest.fails_with("no place for the profile", "tune", "--seconds", 0.5,
                        env=plain(UCX_CUDA_NC_PROFILE="none"))


def test_tune_fails_where_too_few_predictions_are_near(perftest, tune):
    result = tune("--dry-run", "--seconds", 0.5, "--check", "-s", "small", "--require", 100,
                  status=None)
    near = int(re.search(r"^# predictions: (\d+) of 42 ", result.output, re.M)[1])
    assert result.status == (1 if near < 42 else 0)
    # Without --check.
    assert tune("--require", 90, "--seconds", 0.5, "--dry-run", status=None).status >= 100
    perftest.fails_with("101", "tune", "--check", "--require", 101)


def test_a_broken_machine_profile_is_ignored_with_one_warning(run, tmp_path):
    (tmp_path / "broken.json").write_text('{"format": 1')
    said = run(NC_INFO, "--explain", "vector:1K,8,16",
               env=plain(UCX_CUDA_NC_PROFILE=tmp_path / "broken.json"))
    assert said.count("broken.json is ignored: it is no JSON") == 2  # warning and figures


@pytest.mark.parametrize("arguments", ["pack -l vector:4M,8,16 -n 1000000", "tune --check",
                                       "tune --seconds 3000 --check"])
def test_looks_for_a_place_to_write_before_it_measures(perftest, arguments):
    said = perftest(*arguments.split(), "--json", "/no/such/place", status=1, limit=20)
    assert "/no/such/place cannot be written: No such file" in said.output


def test_looks_for_trouble_before_it_measures(perftest, tmp_path):
    perftest.p2p_fails_with("cannot be written: Is a directory", "--fork", "-l", "vector-8",
                            "--csv", tmp_path)
    perftest.fails_with('there is no set "bogus"', "tune", "--check", "--set", "bogus", "--seconds",
                        3000)
    perftest.fails_with("/none/x.json cannot be written", "tune", "-o", tmp_path / "none/x.json",
                        "--seconds", 3000)
    assert not (tmp_path / "none").exists()
    said = perftest("pack", "-l", "vector:4K,8,16", "-l", "vector:1", status=None)
    assert said.status != 0 and "vector:4K" not in said.output
    perftest.p2p_fails_with("nothing to measure", "--fork", "--sizes", 7, "-l", "transpose")


def test_mpi_halos_take_no_layouts(run):
    env = product.environment()
    said = run("mpirun", "-np", 1, "nc_perftest", "mpi", "-t", "halo6", "--box", 8, "-m", "host",
               "--seconds", 0.01, env=env, cwd="/")
    assert len(said.lines()) == 3
