#!/usr/bin/env python3
"""Processes end while kernels run that nobody waits for."""
import common


def case():
    options = common.arguments(rounds=5)
    common.need(options.backend, simulated=True)
    program = common.accidents()
    for _ in range(options.rounds):
        common.run("mpirun", "-np", 2, program, "exit", "--kind", common.kind(options.backend),
                   env=common.environment(options.backend, common.TRANSPORT),
                   limit=180).must_be_right()


common.main(case)
