#!/usr/bin/env python3
"""Random messages between GPUs for a time (--seconds; an hour in all is split over runs with different
seeds): every byte is checked, and memory, descriptors and mappings stay as they are."""
import common


def case():
    options = common.arguments(seed=1, ranks=2)
    common.need(options.backend, simulated=True)
    env = common.uct_environment(
        options.backend,
        {"UCX_TLS": "cuda_nc,self", "UCX_RNDV_THRESH": 1000, "UCX_CUDA_NC_DIRECT_THRESH": 2000,
         "UCX_CUDA_NC_WORKLIST_CACHE_SIZE": "4M"})
    common.run(common.uct_program("matrix"), "--seed", options.seed, "--ranks", options.ranks, "--kinds", "gggch",
               "--window", 24, "--memory", options.backend, "--seconds", options.seconds, env=env,
               limit=options.seconds + 300).must_be_right()


common.main(case)
