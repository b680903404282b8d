#!/usr/bin/env python3
"""Memory is freed and allocated again at the same address while the peer has it mapped, in and across
blocks of 2 MiB: a stale mapping never gives wrong bytes."""
import common


def case():
    options = common.arguments(count=10000)
    common.need(options.backend, simulated=True)
    program = common.accidents()
    for variables in ({}, {"UCX_CUDA_NC_PULL_MAX": 0}, {"UCX_CUDA_NC_COPY_ENGINES": "n"}):
        result = common.run("mpirun", "-np", 2, program, "reuse", "--count", options.count, "--kind",
                            common.kind(options.backend), "--limit", 900, limit=960,
                            env=common.environment(options.backend, common.TRANSPORT, variables))
        result.must_be_right()
        common.fail_if(" 0 of " in result.output, "no address came again")


common.main(case)
