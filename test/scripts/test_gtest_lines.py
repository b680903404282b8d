"""What check.sh reads out of the logs of GoogleTest programs."""
import json
import subprocess
import sys

from support import product

LOG = """[ RUN      ] first.runs
[       OK ] first.runs (0 ms)
[ RUN      ] first.cannot
a.cc:1: Skipped
no such processor
[  SKIPPED ] first.cannot (0 ms)
[ RUN      ] second.cannot/sim
b.cc:7: Skipped
no such memory
[  SKIPPED ] second.cannot/sim (0 ms)
"""


def test_each_skipped_test_has_its_own_reason(tmp_path):
    """GoogleTest before 1.14 writes the reasons to the log alone."""
    log, results = tmp_path / "log", tmp_path / "json"
    log.write_text(LOG)
    results.write_text(json.dumps({"testsuites": [
        {"name": "first", "testsuite": [{"name": "runs", "result": "COMPLETED"},
                                        {"name": "cannot", "result": "SKIPPED"}]},
        {"name": "second", "testsuite": [{"name": "cannot/sim", "result": "SKIPPED"}]}]}))
    lines = subprocess.run(
        [sys.executable, product.ROOT / "contrib/gtest_lines.py", "read", results, log, "0"],
        stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    assert lines.splitlines() == ["PASS first.runs", "SKIP first.cannot: no such processor",
                                  "SKIP second.cannot/sim: no such memory"]
