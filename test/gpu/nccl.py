#!/usr/bin/env python3
"""NCCL moves bytes between the same GPUs, loaded before and after our first message."""
import common


def case():
    options = common.arguments()
    common.need(options.backend, number=2)
    program = common.accidents()
    for when in ("before", "after"):
        common.run("mpirun", "-np", 2, program, f"nccl-{when}", limit=300,
                   env=common.environment(options.backend, common.TRANSPORT)).must_be_right()


common.main(case)
