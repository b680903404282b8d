#!/usr/bin/env python3
"""Messages between two clients of MPS, the service by which processes share a GPU."""
import shutil
import subprocess
import tempfile

import common


def case():
    options = common.arguments()
    common.need(options.backend)
    common.skip_if(not shutil.which("nvidia-cuda-mps-control"), "no nvidia-cuda-mps-control")
    program = common.accidents()
    with tempfile.TemporaryDirectory() as directory:
        # A service of this case's own: another one, with its own directory, goes on.
        env = common.environment(options.backend, common.TRANSPORT,
                                 {"CUDA_MPS_PIPE_DIRECTORY": directory,
                                  "CUDA_MPS_LOG_DIRECTORY": directory})
        started = subprocess.run(["nvidia-cuda-mps-control", "-d"], env=env, timeout=60)
        common.skip_if(started.returncode != 0, "MPS cannot be started")
        try:
            common.run("mpirun", "-np", 2, program, "messages", env=env, limit=180).must_be_right()
        finally:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env=env, timeout=60)


common.main(case)
