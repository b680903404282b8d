#!/usr/bin/env python3
"""Contiguous messages between two GPUs while a kernel of the application keeps every multiprocessor of
each until they have come: with the mover and without. (Within a GPU a copy may want multiprocessors.)"""
import common


def case():
    options = common.arguments(count=40)
    common.need(options.backend, number=2)
    program = common.accidents()
    for mover in "yn":
        common.run("mpirun", "-np", 2, program, "full", "--count", options.count, limit=180,
                   env=common.environment(options.backend, common.TRANSPORT,
                                          {"UCX_CUDA_NC_MOVER": mover})).must_be_right()


common.main(case)
