"""contrib/env.sh and contrib/setup.sh, as a user meets them."""
import os
import re
import shutil

import pytest

from support import product

ENV_SH = product.ROOT / "contrib/env.sh"
STRICT = f"CUDA_NC_QUIET=1; . '{ENV_SH}'; mpicxx --version >/dev/null"


@pytest.fixture
def sourced(run):
    """Output of a command after env.sh, in that shell, from another directory."""

    def sourced(shell, command):
        env = {**os.environ, "CUDA_NC_QUIET": "1", "CUDA_NC_LOCAL": str(product.LOCAL)}
        return run(shell, "-c", f". '{ENV_SH}' && {command}", env=env, cwd="/").output.strip()

    return sourced


@pytest.mark.parametrize("shell", ["bash", "sh", "zsh"])
def test_env_works_in(sourced, shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    assert sourced(shell, "echo $CUDA_NC_HOME") == str(product.INSTALL)
    assert sourced(shell, "command -v mpicxx") == str(product.VENV / "bin/mpicxx")
    assert sourced(shell, "echo $UCX_PLUGIN_PATH") == str(product.PLUGIN)


def test_env_twice_changes_nothing_more(sourced):
    paths = "echo $PATH:$LD_LIBRARY_PATH"
    assert sourced("bash", paths) == sourced("bash", f". '{ENV_SH}'; {paths}")


def test_env_leads_to_its_own_mpi_and_ucx(sourced):
    library = re.escape(f"{product.VENV.resolve()}/lib/libmpi")
    assert re.search(rf"^MPI .*Open MPI v5.* at {library}", sourced("bash", "nc_info"), re.M)
    assert sourced("bash", "which -a ucx_info").splitlines()[-1] == str(
        product.ucx() / "bin/ucx_info")


def test_nc_info_names_the_mpi_of_the_path_or_says_that_none_is_there(run, tmp_path):
    result = run(product.INSTALL / "bin/nc_info", env={**os.environ, "PATH": str(tmp_path)})
    assert "beside mpicxx or mpirun in PATH" in result.output


def test_env_leaves_no_names_behind(sourced):
    assert sourced("bash", "{ set | grep ^_nc_ || true; }") == ""


def test_env_says_what_a_job_needs(run):
    said = run("bash", "-c", f". '{ENV_SH}'").output
    assert "export UCX_PLUGIN_PATH=" in said
    assert "export LD_PRELOAD=" in said


def test_env_survives_strict_shells(run):
    run("bash", "-euo", "pipefail", "-c", STRICT)


def test_scripts_explain_wrong_options(run):
    assert "usage" in run(product.ROOT / "contrib/setup.sh", "--nonsense", status=2).output
    assert "usage" in run(product.ROOT / "contrib/check.sh", "--only", status=2).output
    refused = run(product.ROOT / "contrib/check.sh", "--only", "unit,?", status=1).output
    assert "there are: format unit " in refused and " uct" in refused
