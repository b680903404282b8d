#!/usr/bin/env python3
"""Memory of cudaMalloc, of pools (cudaMallocAsync), of cuMemCreate and managed memory."""
import common


def case():
    options = common.arguments()
    common.need(options.backend)
    program = common.accidents()
    for kind in ("malloc", "pool", "shared-pool", "virtual", "managed"):
        for variables in (common.TRANSPORT, common.mpi.PLUGIN):
            common.run("mpirun", "-np", 2, program, "messages", "--kind", kind, limit=180,
                       env=common.environment(options.backend, variables)).must_be_right()


common.main(case)
