#!/usr/bin/env python3
"""100,000 random datatypes: GPU to GPU, some of them by orders to movers where each rank has a GPU
of its own; and GPU to host memory."""
import common


def case():
    options = common.arguments(types=100000, seed=1)
    common.need(options.backend, simulated=True)
    program = common.random_types()
    for memory in (options.backend, f"{options.backend},host"):
        result = common.run("mpirun", "-np", 2, program, "--types", options.types // 2,
                            "--seed", options.seed, "--memory", memory, limit=3600,
                            env=common.environment(options.backend, common.TRANSPORT,
                                                   common.ORDERS))
        result.must_be_right()
        if memory == options.backend:
            result.must_have_had_orders(options)


common.main(case)
