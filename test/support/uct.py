"""The transport's tests: programs, environments, and how a matrix of messages is run."""
import os
import re

from support import mpi, product

FULL = bool(os.environ.get("CUDA_NC_FULL"))
LIMIT = 900 if FULL else 180  # seconds of a test
TYPES = 2000 if FULL else 60
BATCHES = 24 if FULL else 12
REPEATS = 2 if FULL else 1  # of a matrix, with other seeds
SEED = int(os.environ.get("CUDA_NC_SEED") or os.environ.get("CUDA_NC_FULL_SEED", 1000))

RELEASES = product.LOCAL / "ucx"
RELEASE_NAMES = ("1.19.0", "1.20.1", "1.21.0", "1.22.0")
LAST = RELEASE_NAMES[-1]
# A release that only other packages bundle so far: its libraries are renamed, and it has no tools,
# no headers and no debug information.
BUNDLED = "1.23.0"
PACKAGES = {BUNDLED: "nixl-cu13==1.5.1"}
# How the product gets into a process.
LOADED = {
    "shim": {"LD_PRELOAD": product.SHIM},
    "plugin": {"UCX_PLUGIN_PATH": product.PLUGIN},
    "both": {"LD_PRELOAD": product.SHIM, "UCX_PLUGIN_PATH": product.PLUGIN},
}
# Small messages too, so that each batch has many from GPU to GPU, and slots that are used again.
DIRECT = {"UCX_CUDA_NC_DIRECT": "y", "UCX_CUDA_NC_DIRECT_THRESH": 2000, "UCX_RNDV_THRESH": 1000,
          "UCX_CUDA_NC_STAGING_SIZE": "8M"}
# Messages of any size, where the threshold alone is set.
SMALL = {"UCX_CUDA_NC_DIRECT_THRESH": 1, "UCX_RNDV_THRESH": "auto"}

# What is bundled gets links under UCX's own names.
FETCH = """rm -rf "$1" && mkdir -p "$1"
"$3" -m pip download -q --disable-pip-version-check --no-deps -d "$1" "$2"
cd "$1" && "$3" -m zipfile -e ./*.whl . && rm -f ./*.whl
if [ -d libucx ]; then
    chmod +x libucx/bin/*
else
    mkdir libucx && mv ./*.libs libucx/lib
    find . -mindepth 1 -maxdepth 1 ! -name libucx -exec rm -r {} +
    for part in ucp uct ucs ucm; do (cd libucx/lib && ln -s lib$part-*.so.* lib$part.so.0); done
fi
touch .complete"""


def package(release):
    return PACKAGES.get(release, f"libucx-cu13=={release}")


def ways(release):
    """Before 1.22 UCX loads no plugins."""
    return tuple(LOADED) if release in (LAST, BUNDLED) else ("shim",)


def _program(name):
    ucx = product.ucx()
    path = product.LOCAL / name
    return path, (
        os.environ.get("CXX", "g++"), "-std=c++17", "-O1", "-Wall", "-Wextra",
        f"-I{product.ROOT}/include", f"-I{product.ROOT}", "-isystem", f"{ucx}/include",
        f"{product.ROOT}/test/uct/{name}.cc", f"{product.ROOT}/bench/test_memory.cc", "-o", path,
        f"-L{product.INSTALL}/lib", "-lcuda_nc", f"-L{ucx}/lib", "-lucp", "-lucs", "-ldl")


_mpi_programs = mpi.WORK / "5"
MAKE = {
    "random_types": ("-f", product.ROOT / "test/mpi/programs.mk", "MPICXX=mpicxx",
                     f"OUTPUT={_mpi_programs}", _mpi_programs / "random-types"),
    "mpi_sizes": ("-f", product.ROOT / "bench/mpi_sizes.mk", "MPICXX=mpicxx",
                  f"OUTPUT={product.LOCAL}/mpi_sizes"),
    "mpi_turns": ("-f", product.ROOT / "bench/mpi_turns.mk", "MPICXX=mpicxx",
                  f"OUTPUT={product.LOCAL}/mpi_turns"),
    "strided_put": ("-f", product.ROOT / "bench/strided_put.mk", "MPICXX=mpicxx",
                    f"PRODUCT={product.INSTALL}", f"UCX={product.ucx()}",
                    f"OUTPUT={product.LOCAL}/strided_put"),
    "ucp_lists": ("-f", product.ROOT / "bench/ucp_lists.mk", "MPICXX=mpicxx",
                  f"UCX={product.ucx()}", f"OUTPUT={product.LOCAL}/ucp_lists"),
}
PROGRAMS = {
    "matrix": _program("matrix"),
    "closing": _program("closing"),
    "lost": _program("lost"),
    "atomics": _program("atomics"),
    "long_lists": _program("long_lists"),
    "one_sided": _program("one_sided"),
    "strided": _program("strided"),
    "random_types": (_mpi_programs / "random-types", None),
    "mpi_sizes": (product.LOCAL / "mpi_sizes", None),
    "mpi_turns": (product.LOCAL / "mpi_turns", None),
    "strided_put": (product.LOCAL / "strided_put", None),
    "ucp_lists": (product.LOCAL / "ucp_lists", None),
}


def environment(*groups, release=None):
    """That of a shell after env.sh with a release of UCX, loaded by nothing; then the groups'."""
    variables = {"UCX_PLUGIN_PATH": None, "UCX_CUDA_NC_GPU": "sim", "UCX_CUDA_NC_SIM_DELAY": 20,
                 "OMPI_MCA_opal_common_ucx_tls": "any", "OMPI_MCA_opal_common_ucx_devices": "any",
                 "OMPI_MCA_mpi_yield_when_idle": 1}
    if release:
        ucx = RELEASES / release / "libucx"
        variables["LD_LIBRARY_PATH"] = f"{ucx}/lib:{product.INSTALL}/lib"
        variables["PATH"] = f"{ucx}/bin:{product.environment()['PATH']}"
    for group in groups:
        variables.update(group)
    return product.environment(**variables)


def run_matrix(run, program, env, seed, arguments):
    """A matrix of messages: it succeeds, and no kernel of a simulated GPU touches memory that is
    not there."""
    result = run(program, "--seed", seed, "--batches", BATCHES, *arguments, env=env)
    assert "illegal access" not in result.output
    return result


def run_knowing_requests(run, program, env, *arguments):
    """UCP's requests tell which receive is meant, from the first message on: in this release too
    they are as we believe, and every message of any size is a rendezvous."""
    result = run(program, "--seed", 1, "--batches", 12, "--ranks", 4, "--kinds", "g", *arguments,
                 env={**env, "UCX_CUDA_NC_STATS": "y"}, status=None)
    assert "RIGHT" in result.output
    assert "GPU zero-copy" not in result.output and "GPU staged" not in result.output
    told = [line for line in result.lines() if "GPU to GPU: " in line]
    assert sum(" 0 declined, 0 messages abandoned" in line for line in told) == 4


def counted(line, way):
    """Whether the line counts at least one message as sent this way."""
    return re.search(rf"[1-9][0-9]* by {way}", line)
