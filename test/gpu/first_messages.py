#!/usr/bin/env python3
"""First messages: of memory that was allocated before MPI_Init, on a GPU that nothing has prepared;
after the program has used the GPU and reset it; and that UCX tells of an allocation, which prepares
the GPU once. With puts and gets by the plugin and without."""
import common

PREPARED = "is prepared for messages"


def case():
    options = common.arguments(count=20)
    common.need(options.backend)
    program = common.accidents()
    for variables in ({}, {"UCX_CUDA_NC_ONE_SIDED": "n"}):
        def job(name, **more):
            env = common.environment(options.backend, common.TRANSPORT, {**variables, **more})
            result = common.run("mpirun", "-np", 2, program, name, "--count", options.count,
                                "--limit", 60, limit=90, env=env)
            result.must_be_right()
            return result

        job("first-early")
        job("first-reset")
        said = job("messages", UCX_LOG_LEVEL="debug").output.count(PREPARED)
        common.fail_if(said != 2, f"{said} GPUs are prepared, by 2 processes")
        said = job("messages", UCX_LOG_LEVEL="debug", UCX_MEM_EVENTS="n").output.count(PREPARED)
        common.fail_if(said != 0, f"{said} GPUs are prepared, though UCX tells of nothing")


common.main(case)
