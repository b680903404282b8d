#!/usr/bin/env python3
"""Both ranks send up to 4 KiB by MPI_Send before either receives: contiguous bytes, which UCX copies
from its eager messages to the GPU, and blocks; with the mover and without."""
import common


def case():
    options = common.arguments(count=200)
    common.need(options.backend, simulated=True)
    program = common.guards()
    shapes = [[]] if options.backend == "sim" else [[], ["--contiguous"]]
    for mover in "yn":
        for shape in shapes:
            common.run("mpirun", "-np", 2, program, "early-sends", "--count", options.count,
                       "--memory", options.backend, *shape, limit=120,
                       env=common.environment(options.backend, common.TRANSPORT,
                                              {"UCX_CUDA_NC_MOVER": mover})).must_be_right()


common.main(case)
