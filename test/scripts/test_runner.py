"""What test/support/runner.py makes of a launcher that does not start."""
import pytest

from support.runner import NOT_LAUNCHED

FAILS = f'''
marker="$1"
echo begun >> "$marker"
if [ "$(wc -l < "$marker")" -le "$2" ]; then
    echo "The {NOT_LAUNCHED}. We cannot continue."
    exit 213
fi
echo RIGHT
'''


def test_a_launcher_that_fails_once_is_started_again(run, tmp_path):
    result = run("bash", "-c", FAILS, "launcher", tmp_path / "begun", 1)
    assert result.lines() == ["RIGHT"]
    assert (tmp_path / "begun").read_text() == "begun\nbegun\n"


def test_a_launcher_that_fails_twice_is_a_failure(run, tmp_path):
    with pytest.raises(pytest.fail.Exception, match="exit status 213"):
        run("bash", "-c", FAILS, "launcher", tmp_path / "begun", 2)
    assert (tmp_path / "begun").read_text() == "begun\nbegun\n"


def test_other_failures_are_not_repeated(run, tmp_path):
    script = 'echo begun >> "$1"; exit 3'
    with pytest.raises(pytest.fail.Exception, match="exit status 3"):
        run("bash", "-c", script, "program", tmp_path / "begun")
    assert (tmp_path / "begun").read_text() == "begun\n"
