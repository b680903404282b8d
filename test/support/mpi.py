"""The MPI tests: under which MPI and UCX they run, how the product is loaded, their programs.

Each test runs under Open MPI 5 with UCX 1.22 (loaded by UCX_PLUGIN_PATH and by the shim) and, where
a system Open MPI 4 is installed, under that with UCX 1.22 and with the system's own UCX."""
import os
import re
import shutil
import typing

from support import product

FULL = bool(os.environ.get("CUDA_NC_FULL"))
LIMIT = 1200 if FULL else 180  # seconds of a test
# Random types of each test, and the first seed: each test has its own types, CI the same ones in
# every run.
TYPES = 4000 if FULL else 2000
SEED = int(os.environ.get("CUDA_NC_FULL_SEED", 20261121))
# Random types in small messages, for each MPI, in host memory and on the simulated GPU: so many jobs
# of so many types each; 10^6 with --full.
JOBS, JOB_TYPES = (20, 50000) if FULL else (1, 2000)
SMALL = ("--types", JOB_TYPES, "--bytes", 4096)
WORK = product.LOCAL / "mpi-tests"

PLUGIN = {"UCX_PLUGIN_PATH": product.PLUGIN}
SHIM = {"LD_PRELOAD": product.SHIM}
# The UCX of the system in place of the private one.
SYSTEM_UCX = {"LD_LIBRARY_PATH": product.INSTALL / "lib"}
# As by default; environment() leaves it out.
TRANSPORT = {"UCX_CUDA_NC_TRANSPORT": "auto"}
OB1 = {"OMPI_MCA_pml": "ob1"}


class Configuration(typing.NamedTuple):
    mpi: int  # Open MPI's major release
    variables: dict

    @property
    def mpirun(self):
        return "mpirun" if self.mpi == 5 else "mpirun.openmpi"


CONFIGURATIONS = {
    "ompi5-stock": Configuration(5, {}),
    "ompi5-plugin": Configuration(5, PLUGIN),
    "ompi5-shim": Configuration(5, SHIM),
    "ompi5-transport": Configuration(5, {**PLUGIN, **TRANSPORT}),
    # Messages that do not go through UCX reach us by the convertor alone.
    "ompi5-ob1": Configuration(5, {**SHIM, **OB1}),
    "ompi5-both": Configuration(5, {**PLUGIN, **SHIM}),
    "ompi5-tcp": Configuration(5, {**PLUGIN, "UCX_TLS": "tcp,self"}),
    "ompi5-small-staging": Configuration(5, {**PLUGIN, "UCX_CUDA_NC_STAGING_SIZE": "64K"}),
    "ompi5-no-pinned-memory": Configuration(5, {**PLUGIN, "UCX_CUDA_NC_SIM_FAULTS": "pinned:1+"}),
    "ompi4-transport": Configuration(4, {**PLUGIN, **TRANSPORT, "UCX_CUDA_NC_PULL_MAX": 0}),
    "ompi4-ucx1.22": Configuration(4, PLUGIN),
    "ompi4-system-ucx": Configuration(4, {**SYSTEM_UCX, **SHIM}),
    "ompi4-ob1": Configuration(4, {**SYSTEM_UCX, **SHIM, **OB1}),
}


# For programs that use the C API: -isystem, for warnings of UCX's headers are not ours.
C_API = (f"-I{product.ROOT}/include -isystem {product.ucx()}/include -L{product.INSTALL}/lib "
         "-lcuda_nc")


def have_openmpi4():
    return bool(shutil.which("mpirun.openmpi") and shutil.which("mpicxx.openmpi"))


def environment(*groups):
    """That of a shell after env.sh, with nothing of the product loaded; then the groups'."""
    variables = {
        "UCX_PLUGIN_PATH": None,
        # Both names: Open MPI 5 and 4.
        "OMPI_MCA_opal_common_ucx_tls": "any", "OMPI_MCA_opal_common_ucx_devices": "any",
        "OMPI_MCA_mpi_yield_when_idle": 1, "UCX_WARN_UNUSED_ENV_VARS": "n",
        "UCX_CUDA_NC_GPU": "sim", "UCX_CUDA_NC_SIM_DELAY": 20, "UCX_CUDA_NC_TRANSPORT": "n",
    }
    for group in groups:
        variables.update(group)
    return product.environment(**variables)


# Messages of any size between GPUs by rendezvous: UCX itself cannot touch a simulated GPU's memory.
ALL_DIRECT = {"UCX_RNDV_THRESH": 1, "UCX_CUDA_NC_DIRECT_THRESH": 1, "UCX_CUDA_NC_STATS": "y"}


def sides_counted(output):
    """Whether the statistics of both ranks of operations-test --kind sides count at least as many
    messages from GPU to GPU as the program says, none by UCX's fragments."""
    said = sorted((int(sent), int(received)) for sent, received in
                  re.findall(r"^SIDES \d: (\d+), (\d+)$", output, re.M))
    counted = []
    for line in re.findall(r"GPU to GPU: sent (.*)", output):
        sent, received = line.split("; received ")
        assert " 0 declined, 0 messages abandoned" in received, line
        ways = re.findall(r"(\d+) (?:by|straight)",
                          re.sub(r"\(.*?\)", "", received.partition(";")[0]))
        kept_whole = re.findall(r"(\d+) (?:by pull|straight)", sent)
        counted.append((sum(map(int, kept_whole)), sum(map(int, ways))))
    assert len(said) == 2 and len(counted) == 2
    # Both ranks say the same, in symmetrical tests.
    return all(found[0] >= least[0] > 0 and found[1] >= least[1]
               for found in counted for least in said)
