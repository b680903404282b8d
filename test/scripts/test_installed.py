"""The installed libraries and the shim, in programs that a user builds."""
import json
import os
import re

import pytest

from support import product

LIBRARIES = [product.INSTALL / "lib/libcuda_nc.so", product.SHIM, product.MODULE]
HEADER = product.INSTALL / "include/cuda_nc/cuda_nc.h"
VECTOR = product.ROOT / "test/scripts/vector.cc"


@pytest.fixture
def needed(run):
    """Names of the libraries that a file needs."""

    def needed(file):
        assert file.is_file()
        return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", file).output)

    return needed


def test_perftest_mpi_is_its_own_program(run, needed, tmp_path):
    assert not any("mpi" in name for name in needed(product.INSTALL / "bin/nc_perftest"))
    assert any("libmpi" in name for name in needed(product.INSTALL / "bin/nc_perftest_mpi"))
    run("mpirun", "-np", 2, "nc_perftest", "mpi", "-m", "host", "--sizes", "8,64K", "-l",
        "vector-8", "--seconds", 0.01, "--json", tmp_path / "mpi.json", env=product.environment(),
        cwd="/")
    file = json.loads((tmp_path / "mpi.json").read_text())
    assert file["mode"] == "mpi" and file["library"].startswith("Open MPI")
    assert len(file["rows"]) == 2 and all(row["verified"] for row in file["rows"])
    assert "UCX_PLUGIN_PATH" in file["environment"]


def test_installed_libraries_need_no_ucx_and_no_driver(needed):
    for library in LIBRARIES:
        assert not [name for name in needed(library)
                    if re.match("lib(uc[pstm]|cuda|mpi|open)", name)
                    and not name.startswith("libcuda_nc.so")]


def test_shim_makes_no_mpi_look_as_if_it_had_large_counts(run):
    """mpi4py calls MPI_Send_c where it finds it; Open MPI 5.0 has none."""
    names = run("nm", "-D", "--defined-only", product.INSTALL / "lib/libcuda_nc_preload.so").output
    assert " MPI_Send\n" in names
    assert not re.findall(r" (MPI_\w+_c)\n", names)


def test_shim_needs_the_c_library_alone(needed):
    assert not [name for name in needed(product.SHIM) if not re.match(r"lib(c|dl)\.so", name)]


def test_module_is_a_plain_file_of_the_right_name(run):
    assert product.MODULE.is_file() and not product.MODULE.is_symlink()
    assert "NODELETE" in run("readelf", "-d", product.MODULE).output


def exported(run):
    """{version: names} of the library's symbols."""
    versions = {}
    for line in run("nm", "-D", "--defined-only", LIBRARIES[0]).lines():
        fields = line.split()
        if len(fields) > 2 and fields[1] != "A":
            name, _, version = fields[2].partition("@@")
            versions.setdefault(version, set()).add(name)
    return versions


def declared():
    """The functions of the C API's header."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    return set(re.findall(r"\b(cuda_nc_[a-z_]+)\(", text))


def test_library_exports_the_c_api_and_its_own_names_alone(run):
    versions = exported(run)
    assert versions.pop("CUDA_NC_1") == declared()
    assert versions.pop("CUDA_NC_LOADER") == {
        "cuda_nc_interpose", "cuda_nc_interpose_install", "cuda_nc_register_transport"}
    private, = versions
    assert private.startswith("CUDA_NC_PRIVATE_")
    assert not [name for name in versions[private] if not re.match(r"_Z[A-Z]*7cuda_nc", name)]


@pytest.mark.parametrize("compiler", [("cc", "-std=c99", "-x", "c"), ("c++", "-std=c++11", "-x", "c++"),
                                      ("c++", "-std=c++20", "-x", "c++")], ids=" ".join)
def test_the_header_of_the_c_api_is_portable(run, compiler):
    run(*compiler, "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-isystem",
        f"{product.ucx()}/include", HEADER)


def test_module_finds_its_library(run):
    env = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    assert f"libcuda_nc.so.0 => {product.INSTALL}" in run("ldd", product.MODULE, env=env).output


def test_everything_loads_without_a_driver(run):
    for library in LIBRARIES:
        run("python3", "-c", "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], os.RTLD_NOW)",
            library)


def test_shim_harms_no_other_program(run):
    env = {**os.environ, "LD_PRELOAD": str(product.SHIM)}
    assert run("sh", "-c", "echo fine", env=env).output == "fine\n"
    assert run("python3", "-c", "print(6 * 7)", env=env).output == "42\n"


def test_shim_alone_without_its_library(run, tmp_path):
    shim = tmp_path / product.SHIM.name
    shim.write_bytes(product.SHIM.read_bytes())
    shim.chmod(0o755)
    env = product.environment("UCX_PLUGIN_PATH")
    run("mpicxx", "-O1", VECTOR, "-o", tmp_path / "alone", env=env)
    assert "RIGHT" in run("mpirun", "-np", 2, "-x", f"LD_PRELOAD={shim}", tmp_path / "alone",
                          env=env).output


def test_mpicxx_and_mpirun_work_at_once(run, tmp_path):
    (tmp_path / "a.cc").write_text(VECTOR.read_text())
    said = run("bash", "-c", f". '{product.ROOT}/contrib/env.sh' >/dev/null && mpicxx a.cc && "
               "mpirun -np 2 ./a.out", cwd=tmp_path).output
    assert "RIGHT" in said


def test_a_job_says_what_was_served(run, tmp_path):
    env = product.environment(UCX_CUDA_NC_STATS="y")
    run("mpicxx", VECTOR, "-o", tmp_path / "s", env=env)
    said = run("mpirun", "-np", 2, tmp_path / "s", env=env, status=None).output
    assert "RIGHT" in said and "strided" in said and "unused" not in said


def test_settings_and_their_defaults_are_documented(run):
    """Name and default, which a table's row in a document begins with."""
    documents = [product.ROOT / "README.md", *sorted((product.ROOT / "docs").glob("**/*.md"))]
    text = "\n".join(document.read_text() for document in documents)
    settings = [line.split("=", 1) for line in
                run(product.INSTALL / "bin/nc_info", "--settings", env={}).lines()
                if line.startswith("UCX_CUDA_NC_")]
    missing = []
    for name, value in settings:
        short = name.removeprefix("UCX_CUDA_NC_")
        # As in a pattern of grep: a dot of the value stands for itself.
        row = rf"^\| .(UCX_CUDA_NC_)?{short}. \| ({re.escape(value)} )?\|"
        if not re.search(row, text, re.M):
            missing.append(f"{name}={value}")
    assert len(settings) > 20 and not missing


@pytest.mark.parametrize("way, variable", [
    ("module", {"UCX_PLUGIN_PATH": str(product.PLUGIN)}),
    ("shim", {"LD_PRELOAD": str(product.SHIM)}),
], ids=["module", "shim"])
def test_settings_are_known_to_ucx_with_the(run, way, variable):
    """UCX lists our settings, and warns of a wrong name alone."""
    ucx = product.ucx()
    env = {**os.environ, "LD_LIBRARY_PATH": f"{ucx}/lib:{product.INSTALL}/lib", **variable}
    lines = run(ucx / "bin/ucx_info", "-c", "-f", env=env).lines()
    at = lines.index("UCX_CUDA_NC_STATS=n")
    assert any("Print at exit" in line for line in lines[max(at - 5, 0):at])
    result = run(ucx / "bin/ucx_perftest", "-l", "-t", "tag_lat", "-n", 100, limit=60,
                 env={**env, "UCX_CUDA_NC_STATS": "n", "UCX_CUDA_NC_STAT": "n"})
    assert "unused environment variable: UCX_CUDA_NC_STAT " in result.output


def test_pkg_config_builds_a_c_program(run, tmp_path):
    (tmp_path / "v.c").write_text("#include <stdio.h>\n#include <cuda_nc/cuda_nc.h>\n"
                                  "int main(void) { return puts(cuda_nc_version()) < 0; }\n")
    env = product.environment()
    flags = run("pkg-config", "--cflags", "--libs", "cuda_nc", env=env).output.split()
    run("cc", tmp_path / "v.c", "-o", tmp_path / "v", *flags)
    said = run(tmp_path / "v", env={**os.environ, "LD_LIBRARY_PATH": f"{product.INSTALL}/lib"})
    assert said.output == run("pkg-config", "--modversion", "cuda_nc", env=env).output
