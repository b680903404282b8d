"""Which CUDA toolkit contrib/setup.sh takes, by the driver of the machine."""
import os

import pytest

from support import product

NVRM = """NVRM version: NVIDIA UNIX {}  {}  Sun May 12 19:39:15 UTC 2024
GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)
"""
CLOSED, OPEN = "x86_64 Kernel Module", "Open Kernel Module for x86_64"


@pytest.fixture
def choose(run, tmp_path):
    """What is said and chosen where nvidia-smi prints `smi` (None: there is none) and the file of
    /proc has `nvrm` (None: there is none)."""

    def choose(smi=None, nvrm=None, wanted="", status=0):
        tools = tmp_path / "bin"
        tools.mkdir(exist_ok=True)
        program = tools / "nvidia-smi"
        program.write_text("#!/bin/sh\nexit 9\n" if smi is None else f"#!/bin/sh\necho '{smi}'\n")
        program.chmod(0o755)
        proc = tmp_path / "version"
        if nvrm is not None:
            proc.write_text(nvrm)
        env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "CUDA_NC_CUDA": wanted}
        command = (f"set -euo pipefail; . '{product.ROOT}/contrib/lib.sh'; NVIDIA_PROC='{proc}'; "
                   "choose_cuda_by_driver; echo \"chosen=${CUDA_NC_CUDA:-}.\"")
        return run("bash", "-c", command, env=env, status=status).output

    return choose


@pytest.mark.parametrize("release", ["525.60.13", "535.183.01", "570.86.15", "579.99"])
def test_cuda_12_is_taken_for_an_older_driver_and_said(choose, release):
    said = choose(smi=release)
    assert f"building with CUDA 12: the NVIDIA driver {release} is older than 580" in said
    assert "chosen=12." in said


@pytest.mark.parametrize("release", ["580.65.06", "590.44"])
def test_a_driver_of_cuda_13_changes_nothing(choose, release):
    assert choose(smi=release) == "chosen=.\n"


def test_without_a_driver_nothing_changes(choose):
    assert choose() == "chosen=.\n"
    assert choose(smi="NVIDIA-SMI has failed because it couldn't communicate with the driver.") == "chosen=.\n"


@pytest.mark.parametrize("module", [CLOSED, OPEN])
def test_the_kernel_module_tells_where_nvidia_smi_does_not(choose, module):
    assert "chosen=12." in choose(nvrm=NVRM.format(module, "550.54.14"))
    assert choose(nvrm=NVRM.format(module, "580.65.06")) == "chosen=.\n"


def test_a_driver_that_is_too_old_for_both_ends_it_with_advice(choose):
    said = choose(smi="470.256.02", status=1)
    assert "driver 470.256.02 is too old: please update it to 525 or later" in said
    assert "CUDA_NC_CUDA=no" in said and "chosen" not in said


@pytest.mark.parametrize("wanted", ["no", "12", "/usr/local/cuda"])
def test_who_names_a_toolkit_is_not_asked(choose, wanted):
    assert choose(smi="470.256.02", wanted=wanted) == f"chosen={wanted}.\n"
