#!/usr/bin/env python3
"""Others open the same memory by CUDA IPC: the program itself, by calls that cannot be watched, and UCX
with its own transport."""
import common


def case():
    options = common.arguments(count=300)
    common.need(options.backend)
    program = common.accidents()
    # A caller that cannot be watched may find its place taken by an older mapping of ours: the manual
    # says to switch pulls off.
    unwatched = {"UCX_CUDA_NC_PULL_MAX": 0}
    common.run("mpirun", "-np", 2, program, "open", "--count", options.count, limit=180,
               env=common.environment(options.backend, common.TRANSPORT, unwatched)).must_be_right()
    # With ONE_SIDED=n UCX reads contiguous messages by its own transport, else by our gets.
    for gets in ({"UCX_CUDA_NC_ONE_SIDED": "n"}, {}):
        for size in (64 << 10, 3 << 20):
            common.run("mpirun", "-np", 2, program, "contiguous", "--count", options.count, "--bytes",
                       size, limit=180, env=common.environment(
                           options.backend, common.TRANSPORT, gets)).must_be_right()


common.main(case)
