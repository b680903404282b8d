#!/usr/bin/env python3
"""The Python package with CuPy's and PyTorch's own arrays: packed, unpacked and copied on their streams,
and between two ranks of mpi4py. Wants ucx_cuda_nc, installed for this Python."""
import importlib.util
import sys

import common


def case():
    options = common.arguments(count=300, seed=1)
    common.need(options.backend)
    common.skip_if(importlib.util.find_spec("ucx_cuda_nc") is None,
                   "ucx_cuda_nc is not installed for this Python")
    env = common.environment(options.backend, common.TRANSPORT)
    libraries = [name for name in ("cupy", "torch") if importlib.util.find_spec(name) is not None]
    common.skip_if(not libraries, "neither CuPy nor PyTorch is installed for this Python")
    for library in libraries:
        program = (sys.executable, common.HERE / "accidents/with_arrays.py")
        for what in ("moves", "streams"):
            common.run(*program, what, library, options.count, options.seed, env=env,
                       limit=300).must_be_right()
        if importlib.util.find_spec("mpi4py") is not None:
            common.run("mpirun", "-np", 2, *program, "messages", library, options.count, options.seed,
                       env=env, limit=300).must_be_right()


common.main(case)
