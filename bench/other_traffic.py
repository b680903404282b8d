#!/usr/bin/env python3
"""What traffic that is not ours pays: UCX's ucx_perftest between two processes, stock and with the
plugin, in turns.

usage: . contrib/env.sh; bench/other_traffic.py [--turns N] [--cpus A,B] [--tls LIST ...]

Rows: UCX_TLS; test and bytes. Latencies are half round trips in ns, rates MB/s: medians of the turns.
"more" is the median of the turns' differences, with the plugin less stock, in ns for latencies and in
% of the bandwidth else; "scatter" is how far half of these differences lie from their median. What is
smaller than that was not seen. The two processes run on these two processors: take two that nothing
else uses."""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

PERFTEST = "ucx_perftest"
# test, bytes, iterations
LATENCIES = [("tag_lat", 8, 1000000), ("ucp_am_lat", 8, 1000000), ("tag_lat", 4096, 200000)]
RATES = [("tag_bw", 8, 2000000), ("tag_bw", 65536, 40000), ("tag_bw", 1 << 20, 3000)]
OUR_VARIABLES = ("UCX_PLUGIN_PATH", "LD_PRELOAD", "UCX_TLS")
LIMIT = 60  # seconds of a run


def environment(plugin, tls):
    made = {name: value for name, value in os.environ.items() if name not in OUR_VARIABLES}
    made["UCX_WARN_UNUSED_ENV_VARS"] = "n"
    if plugin:
        made["UCX_PLUGIN_PATH"] = str(plugin)
    if tls != "unset":
        made["UCX_TLS"] = tls
    return made


def run(plugin, tls, test, size, iterations, cpus, port):
    """The last line's columns of ucx_perftest: latency in us, or MB/s."""
    words = [PERFTEST, "-p", str(port), "-f", "-v"]
    variables = environment(plugin, tls)
    server = subprocess.Popen([*words, "-c", str(cpus[0])], env=variables,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        command = [*words, "localhost", "-c", str(cpus[1]), "-t", test, "-s", str(size), "-n",
                   str(iterations), "-w", "10000"]
        end = time.monotonic() + LIMIT
        while True:
            client = subprocess.run(command, env=variables, capture_output=True, text=True,
                                    timeout=LIMIT)
            if client.returncode == 0:
                break
            if time.monotonic() > end or server.poll() is not None:
                sys.exit(f"{' '.join(command)} failed: {client.stderr.strip()}")
            time.sleep(0.05)  # the server does not listen yet
        server.wait(LIMIT)
    finally:
        server.kill()
        server.wait()
    columns = client.stdout.strip().splitlines()[-1].split(",")
    return float(columns[3]) * 1000 if test.endswith("lat") else float(columns[5])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--cpus", default="0,1")
    parser.add_argument("--port", type=int, default=13337)
    parser.add_argument("--tls", nargs="+", default=["posix", "tcp", "unset"])
    options = parser.parse_args()
    home = os.environ.get("CUDA_NC_HOME")
    if not home:
        parser.error("CUDA_NC_HOME is not set: the prefix that the plugin is installed in")
    plugin = pathlib.Path(home) / "lib/ucx-cuda-nc"
    cpus = [int(one) for one in options.cpus.split(",")]
    port = options.port
    print(f"{'UCX_TLS':8} {'test':10} {'bytes':>8} {'stock':>10} {'plugin':>10} {'more':>8} "
          f"{'scatter':>8}")
    for tls in options.tls:
        for test, size, iterations in LATENCIES + RATES:
            samples = {None: [], plugin: []}
            for turn in range(options.turns):
                for which in (None, plugin) if turn % 2 == 0 else (plugin, None):
                    port += 1  # the last one may still be in use
                    count = iterations // 10 if tls == "tcp" else iterations  # it takes longer
                    samples[which].append(run(which, tls, test, size, count, cpus, port))
            stock, ours = samples[None], samples[plugin]
            if test.endswith("lat"):
                more, unit = [b - a for a, b in zip(stock, ours)], "ns"
            else:
                more, unit = [(a - b) / a * 100 for a, b in zip(stock, ours)], "%"
            middle = statistics.median(more)
            scatter = statistics.median(abs(one - middle) for one in more)
            print(f"{tls:8} {test:10} {size:8} {statistics.median(stock):10.1f} "
                  f"{statistics.median(ours):10.1f} {middle:6.1f} {unit:2} {scatter:7.1f}",
                  flush=True)


if __name__ == "__main__":
    main()
