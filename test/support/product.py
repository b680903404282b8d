"""Where the installed product lies, and the environment that contrib/env.sh makes for it."""
import functools
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCAL = pathlib.Path(os.environ.get("CUDA_NC_LOCAL") or ROOT / ".local")
INSTALL = LOCAL / "install"
VENV = LOCAL / "venv"
BUILD = LOCAL / "build"
LOGS = LOCAL / "log"
PYTHON = VENV / "bin/python3"
PLUGIN = INSTALL / "lib/ucx-cuda-nc"
SHIM = INSTALL / "lib/libcuda_nc_preload.so"
MODULE = PLUGIN / "libuct_cudanc.so.0"


def ucx():
    """The UCX of the private Python environment."""
    return next(VENV.glob("lib/python3*/site-packages/libucx"))


@functools.lru_cache(maxsize=None)
def _sourced():
    text = subprocess.run(
        ["bash", "-c", 'CUDA_NC_QUIET=1 . "$0/contrib/env.sh" && exec env -0', str(ROOT)],
        stdout=subprocess.PIPE, check=True, timeout=60).stdout.decode()
    return dict(line.split("=", 1) for line in text.split("\0") if line)


def environment(*without, **changes):
    """That of a shell after env.sh; None as a value removes a variable."""
    merged = {**_sourced(), **changes, **dict.fromkeys(without)}
    return {name: str(value) for name, value in merged.items() if value is not None}
