"""The circumstances in which matrices of messages are run: name, variables, arguments of the
program. Each row has a seed of its own."""
import typing

from support.uct import BATCHES, FULL, SEED, SMALL

# The seeds of test_releases.py come first.
FIRST_SEED = SEED + 37


class Row(typing.NamedTuple):
    name: str
    variables: dict
    arguments: list
    seed: int


ROWS = []


def row(name, *words):
    """words: VARIABLE=VALUE, or a dictionary of these, before "--"; arguments behind."""
    at = words.index("--")
    variables = {}
    for word in words[:at]:
        variables.update(word if isinstance(word, dict) else [word.split("=", 1)])
    arguments = [part for word in words[at + 1:] for part in str(word).split()]
    ROWS.append(Row(name, variables, arguments, FIRST_SEED + len(ROWS)))


row("four-ranks", "--", "--ranks 4 --window 24 --kinds gggc")
row("wakeup", "--", "--wakeup --kinds ggh")
row("one-gpu", "--", "--gpus 1 --kinds ggc")
row("slots", "UCX_CUDA_NC_PIPE=n", "--", "--kinds ggc")
row("launches-block", "CUDA_LAUNCH_BLOCKING=1", "--", "--kinds ggc")
row("no-patience", "UCX_CUDA_NC_PULL_MAX=0", "UCX_CUDA_NC_PIPE_PATIENCE=0", "--", "--kinds g")
row("little-patience", "UCX_CUDA_NC_PULL_MAX=0", "UCX_CUDA_NC_PIPE_PATIENCE=50", "--",
    "--window 24 --kinds g")
row("one-lane", "UCX_CUDA_NC_PULL_MAX=0", "UCX_CUDA_NC_MAX_SMS=1", "--", "--kinds g")
row("self-without-pulls", "UCX_CUDA_NC_PULL_MAX=0", "UCX_CUDA_NC_CARRIERS=posix,tcp,self", "--",
    "--self --window 16 --kinds ggch")
row("self", "UCX_CUDA_NC_CARRIERS=posix,tcp,self", "--", "--self --window 16 --kinds ggch")
row("self-three-ranks", "UCX_CUDA_NC_CARRIERS=posix,self", "--",
    "--self --ranks 3 --gpus 1 --kinds ggi")
row("self-wakeup", "UCX_CUDA_NC_CARRIERS=posix,self", "--", "--self --wakeup --kinds ggc")
row("self-by-posix", "UCX_TLS=cuda_nc", "UCX_CUDA_NC_CARRIERS=posix", "--", "--self --kinds ggc")
row("self-by-tcp", "UCX_TLS=cuda_nc", "UCX_CUDA_NC_CARRIERS=tcp", "--", "--self --kinds ggc")
# Where events run out most messages go by a copy for each block, which takes long: fewer of them.
row("self-events-run-out", "UCX_CUDA_NC_CARRIERS=posix,self", "UCX_CUDA_NC_SIM_FAULTS=event:9+",
    "--", "--self --kinds g", f"--batches {BATCHES // 2}")
# Small messages in other circumstances.
row("small-four-ranks", SMALL, "--", "--largest 3000 --ranks 4 --window 24 --kinds gggci")
row("small-wakeup", SMALL, "--", "--largest 3000 --wakeup --kinds ggh")
row("small-self", SMALL, "UCX_CUDA_NC_CARRIERS=posix,self", "--",
    "--largest 3000 --self --kinds ggc")
row("small-old-protocols", SMALL, "UCX_PROTO_ENABLE=n", "UCX_RNDV_THRESH=1", "--", "--largest 3000")
row("small-closed-by-force", SMALL, "--", "--largest 3000 --close-batch 2 --window 24 --kinds g")
# Ranks whose settings differ.
row("one-without-direct", SMALL, "--", "--odd UCX_CUDA_NC_DIRECT=n --ranks 4 --kinds ggch")
row("other-thresholds", SMALL, "--", "--odd UCX_CUDA_NC_DIRECT_THRESH=20000 --kinds ggc")
row("one-without-gpus", SMALL, "--", "--odd UCX_CUDA_NC_GPU=none --kinds chi")
# The receiver takes the bytes itself.
row("pulls", "--", "--window 24 --kinds g")
row("pulls-four-ranks", "--", "--ranks 4 --window 24 --kinds g")
row("pulls-wakeup", "--", "--wakeup --kinds gg")
row("pulls-one-lane", "UCX_CUDA_NC_MAX_SMS=1", "--", "--kinds g")
row("pulls-little-staging", "UCX_CUDA_NC_STAGING_SIZE=2M", "--", "--window 16 --kinds g")
row("pulls-third-ipc", "UCX_CUDA_NC_SIM_FAULTS=ipc_open:3", "--", "--kinds g")
row("pulls-streams-run-out", "UCX_CUDA_NC_SIM_FAULTS=stream:11+", "--", "--kinds ggc")
# Messages that UCP sends in one piece after all.
row("pulls-large-segments", "UCX_POSIX_SEG_SIZE=32K", "--", "--window 24 --kinds g")
row("pulls-slow-streams", "UCX_CUDA_NC_SIM_FAULTS=slow:10", "--", "--kinds ggc")
# Endpoints that are closed by force while messages are under way. UCX allows it in peer-error mode
# alone: no early offers there, and no pulls.
CLOSES = "--close-batch 2 --window 24 --kinds g"
row("closed-by-force", "--", CLOSES)
row("closed-by-force-through-host", "UCX_CUDA_NC_DIRECT=n", "--", CLOSES)
row("closed-by-force-slots", "UCX_CUDA_NC_PIPE=n", "--", CLOSES)
row("closed-by-force-host-slots", "UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+", "--", CLOSES)
row("closed-by-force-slow-streams", "UCX_CUDA_NC_SIM_FAULTS=slow:10", "--", CLOSES)
row("closed-by-force-tcp", "UCX_CUDA_NC_CARRIERS=tcp", "--", CLOSES)
row("closed-by-force-four-ranks", "--", "--close-batch 2 --ranks 4 --window 16 --kinds ghci")
SEED_OF_FLUSHES = ROWS[-1].seed
# GPUs that do not reach each other.
row("little-staging", "UCX_CUDA_NC_PULL_MAX=0", "UCX_CUDA_NC_STAGING_SIZE=2M", "--",
    "--window 16 --kinds g")
row("no-ipc", "UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+", "--", "--kinds ggc")
row("no-ipc-one-gpu", "UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+", "--", "--gpus 1 --kinds g")
row("no-ipc-little-staging", "UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+", "UCX_CUDA_NC_STAGING_SIZE=2M",
    "--", "--window 16 --kinds g")
row("no-ipc-four-ranks", "UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+", "--",
    "--ranks 4 --window 24 --kinds g")
row("no-ipc-killed-peer", "UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+", "UCX_CUDA_NC_CARRIERS=tcp",
    "UCX_KEEPALIVE_INTERVAL=0.3s", "--", "--kill-batch 2 --window 12 --kinds gggc")
row("no-ipc-no-pinning", "UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+,pin:1+", "--", "--kinds ggc")
row("second-pinning", "UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+,pin:2", "--", "--kinds g")
row("third-ipc", "UCX_CUDA_NC_PULL_MAX=0", "UCX_CUDA_NC_SIM_FAULTS=ipc_open:3", "--", "--kinds g")
row("second-ipc", "UCX_CUDA_NC_PULL_MAX=0", "UCX_CUDA_NC_SIM_FAULTS=ipc_open:2", "--", "--kinds g")
row("streams-run-out", "UCX_CUDA_NC_PULL_MAX=0", "UCX_CUDA_NC_SIM_FAULTS=stream:11+", "--",
    "--kinds ggc")
row("fifth-pinned", "UCX_CUDA_NC_SIM_FAULTS=pinned:5", "--", "--kinds g")
row("events-run-out", "UCX_CUDA_NC_SIM_FAULTS=event:9+", "--", "--kinds ggc",
    f"--batches {BATCHES // 2}")
row("slow-streams", "UCX_CUDA_NC_PULL_MAX=0", "UCX_CUDA_NC_SIM_FAULTS=slow:10", "--", "--kinds ggc")
# Launches and kernels that fail on the way through host memory, at the end of short messages too.
for fault in ("launch:6", "launch:8+", "kernel:5", "load:1+", "mark:7"):
    row(f"through-host-{fault}", "UCX_CUDA_NC_DIRECT=n", "UCX_CUDA_NC_STAGING_SIZE=256M",
        f"UCX_CUDA_NC_SIM_FAULTS={fault}", "--", "--kinds gc --window 24 --largest 100000")
# The same between GPUs. A message that has begun there may fail, where a kernel does.
for fault in ("launch:6", "launch:8+", "mark:7", "kernel:5", "stuck:3"):
    between = ["--kinds g --window 24 --largest 300000", f"--batches {BATCHES // 3}"]
    if fault.startswith(("kernel", "stuck")):
        between.append("--may-fail")
    faulty = f"UCX_CUDA_NC_SIM_FAULTS={fault}"
    row(f"pull-{fault}", faulty, "--", *between)
    row(f"pipe-{fault}", faulty, "UCX_CUDA_NC_PULL_MAX=0", "--", *between)
    row(f"slots-{fault}", faulty, "UCX_CUDA_NC_PIPE=n", "--", *between)
row("no-kernel", "UCX_CUDA_NC_SIM_FAULTS=load:1+", "--", "--kinds ggc --largest 100000")
row("old-protocols", "UCX_PROTO_ENABLE=n", "--", "--kinds ggch")
row("short-addresses", "UCX_ADDRESS_VERSION=v2", "--")
row("little-carrier", "UCX_POSIX_FIFO_SIZE=4", "--", "--window 20 --kinds ggc")
row("little-carrier-four-ranks", "UCX_POSIX_FIFO_SIZE=4", "--", "--ranks 4 --window 40 --kinds g")
row("two-lanes", "UCX_MAX_EAGER_LANES=2", "UCX_TLS=cuda_nc,sysv,self", "--", "--kinds ggc")
row("peer-errors", "UCX_POSIX_ERROR_HANDLING=y", "--", "--peer-errors")
row("all-transports", "UCX_TLS=all", "UCX_CUDA_NC_TRANSPORT=y", "--")
row("stock-thresholds", "UCX_RNDV_THRESH=auto", "UCX_CUDA_NC_DIRECT_THRESH=64K",
    "UCX_CUDA_NC_STAGING_SIZE=256M", "--", "--largest 8000000 --window 4")
# One ring of memory for all; a sender that sleeps must not keep it from the others.
SLEEPS = "--ranks 4 --each-way 16 --kinds g --batches 2 --sleep-batch 1 --largest 1000000"
for pull_max in ("0", "64M"):
    row(f"a-sleeper-pulls-{pull_max}", f"UCX_CUDA_NC_PULL_MAX={pull_max}",
        "UCX_CUDA_NC_STAGING_SIZE=128K", "--", SLEEPS)
# A sender that ends once its sends are complete. Over tcp UCX may lose what it has not read then:
# bytes of short messages, which go through host memory, and what is said of slots.
LEAVES = "--leave-batch 2 --window 24 --kinds g"
for carrier, arguments in (("posix", LEAVES), ("tcp", LEAVES + " --least 4096")):
    RENDEZVOUS = {"UCX_CUDA_NC_CARRIERS": carrier, "UCX_RNDV_THRESH": 1}
    row(f"sender-leaves-pull-{carrier}", RENDEZVOUS, "--", arguments)
    row(f"sender-leaves-pipe-{carrier}", RENDEZVOUS, "UCX_CUDA_NC_PULL_MAX=0", "--", arguments)
    if carrier != "tcp":
        row(f"sender-leaves-slots-{carrier}", RENDEZVOUS, "UCX_CUDA_NC_PIPE=n", "--", arguments)
        row(f"sender-leaves-host-slots-{carrier}", RENDEZVOUS,
            "UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+", "--", arguments)
row("sender-leaves-four-ranks", "UCX_RNDV_THRESH=1", "--", "--ranks 4 --leave-batch 2 --window 24")
row("killed-peer-four-ranks", "UCX_CUDA_NC_CARRIERS=tcp", "UCX_KEEPALIVE_INTERVAL=0.3s", "--",
    "--ranks 4 --kill-batch 1 --window 24 --kinds gggc")
# By the sixth batch every process has sent to every other one: UCX does not look after a peer that
# dies before it has answered the first rendezvous (stock UCX over posix fares so too).
for ranks in (2, 4):
    row(f"killed-peer-posix-{ranks}", "UCX_CUDA_NC_CARRIERS=posix", "UCX_POSIX_ERROR_HANDLING=y",
        "UCX_KEEPALIVE_INTERVAL=0.3s", "--",
        f"--ranks {ranks} --kill-batch 6 --window 24 --kinds gggc --notice-within 15")
# UCX finishes the state of a synchronous send that it has sent eagerly twice.
for kinds in ("h", "g"):
    row(f"killed-peer-synchronous-{kinds}", "UCX_CUDA_NC_CARRIERS=tcp",
        "UCX_KEEPALIVE_INTERVAL=0.3s", "--", "--ranks 3 --kill-batch 1 --window 24 --calls s "
        f"--largest 4000 --kinds {kinds}")
# The killed peer's queue is full: stock UCX waits for room there, and ends no request.
row("killed-peer-full-queue", "UCX_CUDA_NC_CARRIERS=posix", "UCX_POSIX_ERROR_HANDLING=y",
    "UCX_KEEPALIVE_INTERVAL=0.3s", "UCX_POSIX_FIFO_SIZE=8", "--",
    "--kill-batch 1 --window 60 --kinds gggc --notice-within 15")
# Carriers, devices and settings of which the others are not.
row("sysv", "UCX_CUDA_NC_CARRIERS=sysv", "--", "--kinds ggch")
row("shm-device", "UCX_SHM_DEVICES=memory", "--", "--kinds ggch")
row("lo-device", "UCX_CUDA_NC_CARRIERS=tcp", "UCX_NET_DEVICES=lo", "--", "--kinds ggch")
for setting in ("UCX_CUDA_NC_PIPE=n", "UCX_CUDA_NC_STAGING_SIZE=512K",
                "UCX_CUDA_NC_CARRIERS=tcp"):
    row(f"odd-{setting}", "--", f"--odd {setting} --kinds ggch")
# Two hosts, and four: only TCP leads from one to another.
row("two-hosts", "UCX_CUDA_NC_CARRIERS=tcp", "--", "--hosts")
row("four-hosts", "UCX_CUDA_NC_CARRIERS=tcp", "--", "--hosts --ranks 4 --window 16")
row("two-hosts-wakeup", "UCX_CUDA_NC_CARRIERS=tcp", "--", "--hosts --wakeup --kinds ggh")
row("two-hosts-killed-peer", "UCX_CUDA_NC_CARRIERS=tcp", "UCX_KEEPALIVE_INTERVAL=0.3s", "--",
    "--hosts --kill-batch 1 --window 12 --kinds gggc")
# With a mover, and where it fails: messages that are short enough to be orders, often the same.
MOVER = {**SMALL, "UCX_CUDA_NC_MOVER": "y"}
SHORT = f"--largest 100000 --window 24 --batches {4 * BATCHES}"
row("mover", MOVER, "--", SHORT, "--kinds ggch")
row("mover-cannot-start", MOVER, "UCX_CUDA_NC_SIM_FAULTS=mover:1+", "--", SHORT, "--kinds ggc")
row("mover-starts-now-and-then", MOVER,
    "UCX_CUDA_NC_SIM_FAULTS=mover:2,mover:4,mover:5,mover:9,mover:10", "--", SHORT, "--kinds ggc")
row("mover-dies", MOVER, "UCX_CUDA_NC_SIM_FAULTS=mover_dies:4", "--", SHORT, "--kinds ggc")
row("mover-dies-first", MOVER, "UCX_CUDA_NC_SIM_FAULTS=mover_dies:1", "--", SHORT, "--kinds g")
row("mover-late", MOVER, "UCX_CUDA_NC_SIM_FAULTS=mover_late:2+", "--", SHORT, "--kinds g",
    f"--batches {BATCHES}")
row("mover-leaves-soon", MOVER, "UCX_CUDA_NC_MOVER_IDLE=1", "--", SHORT, "--kinds ggc")
row("mover-killed-peer", MOVER, "UCX_CUDA_NC_CARRIERS=tcp", "UCX_KEEPALIVE_INTERVAL=0.3s",
    "UCX_CUDA_NC_SIM_FAULTS=mover_late:3+", "--", SHORT, "--kill-batch 9 --kinds g")
ORDERS_ARE_TAKEN = ("mover", "mover-starts-now-and-then", "mover-dies", "mover-dies-first",
                    "mover-late", "mover-leaves-soon")
for batch in range(10 if FULL else 0):
    row(f"killed-peer-{batch}", "UCX_CUDA_NC_CARRIERS=tcp", "UCX_KEEPALIVE_INTERVAL=0.3s", "--",
        f"--kill-batch {batch} --window 12 --kinds gggc --ranks {2 + batch % 3}")
# A sender that ends once its sends are complete, and contiguous memory.
for carrier in ("posix", "tcp"):
    row(f"sender-leaves-contiguous-{carrier}", "UCX_RNDV_THRESH=1",
        f"UCX_CUDA_NC_CARRIERS={carrier}", "--",
        "--ranks 3 --leave-batch 2 --window 24 --least 4096 --kinds gp")
# UCX is not asked for errors: it ends no receive of a process that was killed. We do.
LOSES = "--lose-batch 2 --window 24 --kinds g --ranks 3 --least 4096"
for carrier in ("posix", "tcp"):
    LOST = {"UCX_CUDA_NC_CARRIERS": carrier, "UCX_RNDV_THRESH": 1, "UCX_CUDA_NC_SIM_DELAY": 300}
    row(f"lost-sender-pull-{carrier}", LOST, "--", LOSES)
    row(f"lost-sender-pipe-{carrier}", LOST, "UCX_CUDA_NC_PULL_MAX=0", "--", LOSES)
    row(f"lost-sender-slots-{carrier}", LOST, "UCX_CUDA_NC_PIPE=n", "--", LOSES)
