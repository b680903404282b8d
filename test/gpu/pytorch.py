#!/usr/bin/env python3
"""PyTorch shares tensors between the same processes by CUDA IPC, imported before and after our first
pull."""
import sys

import common


def case():
    options = common.arguments()
    common.need(options.backend)
    env = common.environment(options.backend, common.TRANSPORT)
    found = common.run(sys.executable, "-c", "import torch; assert torch.cuda.is_available()", env=env,
                       limit=300)
    common.skip_if(found.status != 0, "no PyTorch with CUDA is here")
    for when in ("before", "after"):
        common.run("mpirun", "-np", 2, sys.executable, common.HERE / "accidents/with_torch.py", when,
                   env=env, limit=300).must_be_right()


common.main(case)
