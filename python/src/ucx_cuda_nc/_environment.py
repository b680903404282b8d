"""Where the plugin lies, which UCX a job has, and the environment that loads the one into the other."""
from __future__ import annotations

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import sysconfig

PACKAGE = pathlib.Path(__file__).resolve().parent
FIRST_WITH_PLUGINS = (1, 22)


class Problem(Exception):
    """A sentence for the user: what is wrong, and what to do."""


def check_platform() -> None:
    if not sys.platform.startswith("linux"):
        raise Problem(f"ucx-cuda-nc runs on Linux alone, and this is {platform.system()}; on "
                      "Windows use WSL 2, on a Mac a Linux machine")
    if platform.machine() not in ("x86_64", "AMD64"):
        raise Problem(f"this package is for x86-64 and this is {platform.machine()}: build "
                      "ucx-cuda-nc from source")


def get_library_dir() -> pathlib.Path:
    """The folder of libcuda_nc.so, for linkers and LD_LIBRARY_PATH."""
    return PACKAGE / "lib"


def get_plugin_dir() -> pathlib.Path:
    """The value of UCX_PLUGIN_PATH (UCX 1.22 and later)."""
    return PACKAGE / "lib/ucx-cuda-nc"


def get_preload() -> pathlib.Path:
    """The value of LD_PRELOAD (UCX 1.13 to 1.21)."""
    return PACKAGE / "lib/libcuda_nc_preload.so"


def get_include() -> pathlib.Path:
    """The folder of cuda_nc/cuda_nc.h, for compilers."""
    return PACKAGE / "include"


def enable() -> None:
    """Sets up this process and its children. Call it before UCX is loaded: before `import mpi4py.MPI`,
    `import nixl` or `import ucxx`. It works with UCX 1.22 and later, which read UCX_PLUGIN_PATH when
    they are loaded; for older ones start the program by `python -m ucx_cuda_nc run`.

    RuntimeError: UCX is loaded already."""
    check_platform()
    folders = os.environ.get("UCX_PLUGIN_PATH", "").split(":")
    if "libcuda_nc_preload" in _loaded() or str(get_plugin_dir()) in folders:
        return
    if re.search(r"/libucs[-.]", _loaded()):
        raise RuntimeError("UCX is loaded in this process already, and no longer looks for plugins: "
                           "call ucx_cuda_nc.enable() before the import that loads UCX, or start "
                           "the program by `python -m ucx_cuda_nc run -- ...`")
    os.environ["UCX_PLUGIN_PATH"] = _prepended("UCX_PLUGIN_PATH", get_plugin_dir())


def _loaded() -> str:
    return pathlib.Path("/proc/self/maps").read_text(errors="replace")


# ---- which UCX

def wheel_ucx() -> pathlib.Path | None:
    """The libraries of the package libucx of this Python, if it is installed."""
    for scheme in ("platlib", "purelib"):
        folder = pathlib.Path(sysconfig.get_path(scheme)) / "libucx/lib"
        if (folder / "libucp.so.0").exists():
            return folder
    return None


def find_ucx(command_path: str | None = None, first: str | None = None) -> list[str]:
    """libucp of each UCX that a job may load: the first one that the loader would find, and those
    that packages such as NIXL's bring under other names. `first`: a folder before all others."""
    folders = [first, *os.environ.get("LD_LIBRARY_PATH", "").split(":")]
    if command_path:
        prefix = pathlib.Path(command_path).resolve().parent.parent
        folders += [str(prefix / "lib"), str(prefix / "lib64")]
    plain = [str(pathlib.Path(folder) / "libucp.so.0") for folder in folders if folder]
    listed = subprocess.run([shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin") or "true",
                             "-p"], capture_output=True, text=True, check=False).stdout
    plain += re.findall(r"^\s*libucp\.so\.0 .*=> (\S+)$", listed, re.M)
    found = [path for path in plain if os.path.exists(path)][:1]
    site = pathlib.Path(sysconfig.get_path("platlib"))
    return found + sorted(map(str, site.glob("*.libs/libucp-*.so*")))


_PROBE = """
import ctypes, sys
for path in sys.argv[1:]:
    try:
        library = ctypes.CDLL(path)
        numbers = [ctypes.c_uint() for _ in range(3)]
        library.ucp_get_version(*map(ctypes.byref, numbers))
        print(path, *(number.value for number in numbers), flush=True)
    except (OSError, AttributeError):
        pass
"""


def ucx_version(path: str) -> tuple[int, ...] | None:
    """Of a libucp, asked in a process of its own; None where it cannot be loaded."""
    variables = {name: value for name, value in os.environ.items()
                 if not name.startswith("UCX_") and name != "LD_PRELOAD"}
    variables["LD_LIBRARY_PATH"] = f"{os.path.dirname(path)}:{variables.get('LD_LIBRARY_PATH', '')}"
    try:
        answer = subprocess.run([sys.executable, "-c", _PROBE, path], capture_output=True, text=True,
                                env=variables, timeout=60, check=False).stdout
    except subprocess.TimeoutExpired:
        return None
    numbers = answer.rpartition(path)[2].split()
    return tuple(int(number) for number in numbers[:3]) if len(numbers) >= 3 else None


# ---- which MPI

def launcher_of(path: str) -> str | None:
    """"openmpi", "hydra" (MPICH and its kin) or None: who starts the ranks of this mpirun."""
    if not re.fullmatch(r"(mpirun|mpiexec|prterun|orterun)[\w.-]*", os.path.basename(path)):
        return None
    try:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = told.stdout + told.stderr
    if re.search(r"Open MPI|OpenRTE|prterun|PRRTE", text):
        return "openmpi"
    return "hydra" if re.search(r"HYDRA|MPICH|Intel\(R\) MPI", text) else None


# ---- the environment

def _prepended(name: str, folder: os.PathLike | str) -> str:
    parts = [part for part in os.environ.get(name, "").split(":") if part]
    return ":".join([str(folder), *(part for part in parts if part != str(folder))])


def variables(load: str = "auto", ucx: str = "auto", command_path: str | None = None,
              launcher: str | None = None) -> dict[str, str]:
    """What has to be set for a job. `load`: auto, plugin, preload or both. `ucx`: auto, keep, or the
    folder of a UCX's libraries. Raises Problem."""
    check_platform()
    result = {}
    if ucx not in ("auto", "keep"):
        folder = pathlib.Path(ucx)
        if not list(folder.glob("libucp*.so*")):
            raise Problem(f"no libucp.so.0 is in {folder}: --ucx wants the folder of UCX's libraries")
        first = str(folder.resolve())
    else:
        wheel = wheel_ucx() if ucx == "auto" else None
        first = str(wheel) if wheel and not _leads_to_ucx(os.environ.get("LD_LIBRARY_PATH", "")) else None
    result["LD_LIBRARY_PATH"] = _prepended("LD_LIBRARY_PATH", get_library_dir())
    if first:
        result["LD_LIBRARY_PATH"] = f"{first}:{result['LD_LIBRARY_PATH']}"
    if load == "auto":
        load = _choose(first, command_path)
    if load in ("plugin", "both"):
        result["UCX_PLUGIN_PATH"] = _prepended("UCX_PLUGIN_PATH", get_plugin_dir())
    if load in ("preload", "both"):
        result["LD_PRELOAD"] = _prepended("LD_PRELOAD", get_preload())
    _add_settings_of_mpi(result, launcher)
    return result


def _leads_to_ucx(path: str) -> bool:
    return any(list(pathlib.Path(folder).glob("libucp.so*")) for folder in path.split(":") if folder)


def _choose(first: str | None, command_path: str | None) -> str:
    versions = list(filter(None, map(ucx_version, find_ucx(command_path, first))))
    if not versions:
        raise Problem("no UCX was found: `pip install 'ucx-cuda-nc[ucx]'` brings one; --ucx FOLDER "
                      "names the libraries of another; --load both runs the command nevertheless")
    new = [version[:2] >= FIRST_WITH_PLUGINS for version in versions]
    return "plugin" if all(new) else "both" if any(new) else "preload"


def _add_settings_of_mpi(result: dict[str, str], launcher: str | None) -> None:
    chosen = {}
    # Open MPI uses UCX by itself only with certain network cards. Both names: Open MPI 5 and 4.
    chosen.update(OMPI_MCA_pml="ucx", OMPI_MCA_pml_ucx_tls="any", OMPI_MCA_pml_ucx_devices="any",
                  OMPI_MCA_opal_common_ucx_tls="any", OMPI_MCA_opal_common_ucx_devices="any")
    if os.geteuid() == 0:
        chosen.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if (os.cpu_count() or 1) < 8:
        chosen.update(PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe",
                      OMPI_MCA_rmaps_base_oversubscribe="1")
    if launcher == "hydra":
        # Else MPICH's own shared memory takes the messages within a machine.
        chosen.update(MPIR_CVAR_NOLOCAL="1")
    # What the user has set stays.
    result.update({name: value for name, value in chosen.items() if name not in os.environ})


def forwarded(names, command: list[str], launcher: str | None) -> list[str]:
    """The command, told to give the variables to ranks of other machines. Hydra gives them all by
    itself, and so does srun; Open MPI gives those named OMPI_MCA_ and PRTE_MCA_."""
    if launcher != "openmpi":
        return command
    named = {command[i + 1].partition("=")[0] for i in range(len(command) - 1) if command[i] == "-x"}
    options = []
    for name in names:
        if not re.match(r"(OMPI|PRTE|PMIX)_", name) and name not in named:
            options += ["-x", name]
    return [command[0], *options, *command[1:]]
