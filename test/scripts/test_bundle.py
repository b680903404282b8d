"""contrib/bundle.sh: what it packs runs elsewhere."""
import os
import re

from support import product

LIMIT = 300
BUNDLE = product.ROOT / "contrib/bundle.sh"


def test_runs_where_it_is_unpacked(run, tmp_path):
    """With nothing of this directory: no PATH, no library leads here."""
    local = {**os.environ, "CUDA_NC_LOCAL": str(product.LOCAL)}
    run(BUNDLE, tmp_path / "all.tar.gz", "LICENSE", env=local)
    run("tar", "-C", tmp_path, "-xzf", tmp_path / "all.tar.gz")
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CUDA_NC_QUIET": "1",
            "UCX_CUDA_NC_GPU": "sim", "UCX_WARN_UNUSED_ENV_VARS": "n"}
    script = ('. ucx-cuda-nc/contrib/env.sh && nc_info && '
              'mpirun -np 2 nc_perftest mpi -m gpu -t latency --sizes 4K -l vector-64 '
              '--seconds 0.01')
    said = run("bash", "-ec", script, env=bare, cwd=tmp_path).output
    assert re.search(r"^latency +vector-64 ", said, re.M) and "transport   cuda_nc is on" in said
    assert f"at {tmp_path}/ucx-cuda-nc/.local/venv/lib/libmpi" in said
    assert str(product.LOCAL) not in said
    assert (tmp_path / "ucx-cuda-nc/LICENSE").exists()


def test_says_what_is_missing(run, tmp_path):
    nowhere = {**os.environ, "CUDA_NC_LOCAL": str(tmp_path)}
    assert "usage:" in run(BUNDLE, status=2, env=nowhere).output
    assert "nothing is installed" in run(BUNDLE, tmp_path / "a.tar.gz", status=1,
                                         env=nowhere).output
    assert not (tmp_path / "a.tar.gz").exists()
