#!/usr/bin/env python3
"""A kernel that traps in the middle of traffic, which loses the context: all processes end, no wrong
byte is delivered, and the next job is well."""
import common


def case():
    options = common.arguments(count=400)
    common.need(options.backend)
    env = common.environment(options.backend, common.TRANSPORT)
    program = common.accidents()
    common.run("mpirun", "-np", 2, program, "trap", "--count", options.count, env=env,
               limit=180).must_have_ended()
    common.run("mpirun", "-np", 2, program, "messages", env=env, limit=180).must_be_right()


common.main(case)
