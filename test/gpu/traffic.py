#!/usr/bin/env python3
"""Random messages between GPUs for a time (--seconds; an hour in all is split over runs with different
seeds), on a real GPU while another thread of each process computes, synchronises the device,
allocates, frees and forks at random moments: every byte is checked, nobody waits for long, and
memory, descriptors and mappings stay as they are."""
import common


def case():
    options = common.arguments(seed=1, ranks=2)
    common.need(options.backend, simulated=True)
    env = common.uct_environment(
        options.backend,
        {"UCX_TLS": "cuda_nc,self", "UCX_RNDV_THRESH": 1000, "UCX_CUDA_NC_DIRECT_THRESH": 2000,
         "UCX_CUDA_NC_WORKLIST_CACHE_SIZE": "4M"}, common.ORDERS)
    beside = ()
    if options.backend == "cuda" and common.cuda_headers():
        beside = ("--bystander", common.built("gpu-bystander.so"))
    else:
        print("nobody else uses the GPU: simulated, or no cuda.h is here", flush=True)
    result = common.run(common.uct_program("matrix"), "--seed", options.seed, "--ranks", options.ranks,
                        "--kinds", "gggch", "--window", 24, "--memory", options.backend,
                        "--seconds", options.seconds, *beside, env=env, limit=options.seconds + 300)
    result.must_be_right()
    result.must_have_had_orders(options)
    result.must_have_had_sets(options)


common.main(case)
