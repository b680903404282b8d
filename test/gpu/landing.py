#!/usr/bin/env python3
"""Received bytes are used at once, by a kernel, a copy engine and another GPU: with the mover, by
launches, and by pipes."""
import common


def case():
    options = common.arguments(count=6000)
    common.need(options.backend)
    program = common.accidents()
    for variables in ({"UCX_CUDA_NC_MOVER": "y"}, {"UCX_CUDA_NC_MOVER": "n"},
                      {"UCX_CUDA_NC_COPY_ENGINES": "n", "UCX_CUDA_NC_MOVER": "n"},
                      {"UCX_CUDA_NC_PULL_MAX": 0}):
        common.run("mpirun", "-np", 2, program, "landing", "--count", options.count, limit=180,
                   env=common.environment(options.backend, common.TRANSPORT, variables,
                                          {"UCX_CUDA_NC_DIRECT_THRESH": 1})).must_be_right()


common.main(case)
