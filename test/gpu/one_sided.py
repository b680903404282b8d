#!/usr/bin/env python3
"""Random puts and gets between processes on one GPU or two, singly and in lists, and with layouts, for
a time (--seconds): every byte and gap is checked. Puts beyond what was registered, targets that are
freed and allocated again, and a peer that dies in the middle."""
import re
import time

import common

KINDS = {
    "plain": (), "fences": ("--fences",), "outside": ("--outside",), "wakeup": ("--wakeup",),
    "short": ("--longest", 16, "--blocks", 3000), "long": ("--longest", 300000, "--blocks", 30),
    "lists": ("--list",), "lists outside": ("--list", "--outside"),
    "freed": ("--freed", "--rounds", 12), "freed lists": ("--freed", "--rounds", 12, "--list"),
    "killed": ("--ranks", 3, "--kill"), "killed lists": ("--ranks", 3, "--kill", "--list"),
}
LAYOUT_KINDS = {"plain": (), "fences": ("--fences",), "outside": ("--outside",),
                "killed": ("--ranks", 3, "--kill")}


def case():
    options = common.arguments(seed=1)
    common.need(options.backend, simulated=True)
    # UCX knows a simulated GPU's memory then.
    cache = {"UCX_MEMTYPE_CACHE": "n"} if options.backend == "sim" else {}
    env = common.uct_environment(options.backend, cache, {"UCX_CUDA_NC_STATS": "y"})
    programs = [(common.uct_program(name), name, kinds)
                for name, kinds in (("one_sided", KINDS), ("strided", LAYOUT_KINDS))]
    end = time.monotonic() + options.seconds
    seed, same = options.seed, 0
    while seed == options.seed or time.monotonic() < end:
        for program, name, kinds in programs:
            for kind, arguments in kinds.items():
                result = common.run(program, "--memory", options.backend, "--seed", seed,
                                    *arguments, env=env, limit=180)
                result.must_be_right()
                common.fail_if("RIGHT" not in result.output, f"{name}, {kind}: no word")
                common.fail_if("One-sided, GPU to GPU" not in result.output,
                               f"{name}, {kind}: nothing went by lists")
                same += sum(map(int, re.findall(r"the same address (\d+) times", result.output)))
        seed += 1
    common.fail_if(same == 0, "no address came again")


common.main(case)
