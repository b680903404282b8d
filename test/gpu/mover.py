#!/usr/bin/env python3
"""The mover as a guest: messages go by its orders while another thread synchronises the device,
allocates, frees, uses the legacy stream, makes contexts and forks at random moments, and processes
end right after their last message. Nobody waits for long, and every byte is checked. How long they
wait is printed, and how long without a mover."""
import common


def case():
    options = common.arguments(rounds=5)
    common.need(options.backend, simulated=True)
    program = common.accidents()
    # Ranks that share a GPU have no mover there: two GPUs are wanted for both to have one.
    for mover, idle in (("y", 50), ("n", 50), ("y", 1), ("y", 1000)):
        for _ in range(options.rounds):
            result = common.run(
                "mpirun", "-np", 2, program, "guest", "--kind", common.kind(options.backend),
                "--count", 400, limit=180, env=common.environment(
                    options.backend, common.TRANSPORT, common.ORDERS,
                    {"UCX_CUDA_NC_MOVER": mover, "UCX_CUDA_NC_MOVER_IDLE": idle}))
            result.must_be_right()
            if mover == "y":
                result.must_have_had_orders(options)


common.main(case)
