#!/usr/bin/env python3
"""What the plugin is judged by between two GPUs: it beside contiguous memory over stock UCX, and
beside an application that packs by hand, in turn, and how far each figure is from the project's goal.

usage: bench/against_stock.py [--rounds N] [--seconds S] [--only GROUP,...] [--stencil PROGRAM]
                              [--memory KIND] [--boxes N,...] [--sizes BYTES,...] [--keep DIRECTORY]

In a shell after contrib/env.sh, on a machine with two GPUs. "Stock" is the same MPI and UCX without
the plugin. Prints Markdown tables, a row for each figure:

  messages  every layout in one process, half a round trip; stock: one block
  short     up to 4 KiB, each layout in a process of its own: what came before makes a difference
  many      64 messages each way at once, time a message
  halos     exchanges with 6 and 26 neighbours; stock: contiguous buffers
  stencil   two faces a step, by datatypes; stock: packed by kernels of the application's own. Needs
            --stencil, a program that bench/stencil.mk makes

Times are medians of each round, in microseconds, in brackets the 95th percentiles; ratios are to the
mean of stock's medians. Exit status 1: a command failed, or bytes were wrong."""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

GROUPS = ("messages", "short", "many", "halos", "stencil")
KIB, MIB = 1 << 10, 1 << 20
FAR_APART, SMALL_BLOCKS = ("plane-x",), ("vector-8", "random-8")
# What a message shall take at most, in times of stock's contiguous memory: bytes -> (usual, blocks of
# 8 B, blocks of 8 B far apart).
OF_STOCK = {64 * KIB: (0.95, 1.0, 0.95), MIB: (1.05, 1.2, 1.3), 16 * MIB: (1.03, 1.2, 1.35),
            64 * MIB: (1.1, 1.1, 1.1)}
SHORT_US = 8  # microseconds that a message of up to 4 KiB shall take at most
HALO = {"halo6": 0.8, "halo26": 0.9}
BY_HAND = {64: 0.5, 128: 0.5, 256: 0.7}


class Failed(Exception):
    pass


class Bench:
    """Runs commands of two ranks, and remembers their rows."""

    def __init__(self, options, directory):
        self.options = options
        self.directory = pathlib.Path(directory)
        self.number = 0

    def run(self, program, arguments, plugin):
        env = dict(os.environ)
        if not plugin:
            env.pop("UCX_PLUGIN_PATH", None)
            env.pop("LD_PRELOAD", None)
        self.number += 1
        path = self.directory / f"{self.number}.json"
        command = ["mpirun", "-np", "2", *program, *map(str, arguments), "--json", str(path)]
        print(f"# {'plugin' if plugin else 'stock'}: {shlex.join(command)}", file=sys.stderr)
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise Failed(f"exit status {done.returncode} of {shlex.join(command)}:\n"
                         f"{done.stdout[-2000:]}")
        return path.read_text()

    def perftest(self, arguments, plugin):
        where = ("-m", self.options.memory, "--seconds", self.options.seconds)
        if self.options.memory == "gpu":
            where += ("--gpus", "0,1")
        return json.loads(self.run(("nc_perftest", "mpi"), (*arguments, *where), plugin))["rows"]

    def stencil(self, arguments, plugin):
        memory = "cuda" if self.options.memory == "gpu" else self.options.memory
        text = self.run((self.options.stencil,), (*arguments, "--memory", memory), plugin)
        return [json.loads(line) for line in text.splitlines()]


class Figures:
    """Medians and 95th percentiles by name, of all rounds."""

    def __init__(self):
        self.times = {}

    def add(self, name, time):
        """`time`: what nc_perftest says of one."""
        self.times.setdefault(name, []).append((time["median_us"], time["p95_us"]))

    def mean(self, name):
        return sum(median for median, _ in self.times[name]) / len(self.times[name])

    def text(self, name):
        return ", ".join(f"{median:.1f} ({p95:.1f})" for median, p95 in self.times[name])


def size_text(size):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


def row_of(name, stock, ours, goal, unit="of stock"):
    """A row of a table; `goal` in times of stock, or in microseconds, or None."""
    ratio = ours.mean(name) / stock.mean(name)
    measured = ratio if unit == "of stock" else ours.mean(name)
    if goal is None:
        verdict = ""
    else:
        verdict = f"{goal:g} {unit}: " + ("met" if measured <= goal else
                                          f"missed by {100 * (measured / goal - 1):.0f} %")
    return f"| {' | '.join(map(str, name))} | {stock.text(name)} | {ours.text(name)} | " \
           f"{ratio:.2f} | {verdict} |"


def table(columns, stock, ours, goal_of, unit="of stock"):
    heading = [*columns, "stock", "plugin", "ratio", "goal"]
    lines = [f"| {' | '.join(heading)} |", "|" + "---|" * len(heading)]
    lines += [row_of(name, stock, ours, goal_of(name), unit) for name in ours.times]
    return "\n".join(lines)


def message_goal(name):
    layout, size = name[0], name[1]
    for bytes_of, goals in OF_STOCK.items():
        if size == size_text(bytes_of):
            return goals[2 if layout in FAR_APART else 1 if layout in SMALL_BLOCKS else 0]
    return None


def beside_one_block(bench, test, sizes, asked):
    """Stock's one block, and the layouts of each of the processes that are asked for."""
    stock, ours = Figures(), Figures()
    least = ("-t", *test, "--sizes", ",".join(map(str, sizes)))
    for _ in range(bench.options.rounds):
        of_stock = {row["bytes"]: row["contiguous"]
                    for row in bench.perftest((*least, "-l", "one-block"), False)}
        for one in asked:
            for row in bench.perftest((*least, *one), True):
                # A layout's size is the largest that is no larger than what was asked for.
                wanted = min(size for size in sizes if size >= row["bytes"])
                name = (row["layout"], size_text(wanted))
                ours.add(name, row["time"])
                stock.add(name, of_stock[wanted])
    return stock, ours


def each_apart(*layouts):
    return [("-l", name) for name in layouts]


def messages(bench):
    sizes = bench.options.sizes or list(OF_STOCK)[::-1]
    stock, ours = beside_one_block(bench, ("latency",), sizes, [("-s", "messages")])
    return table(("layout", "bytes"), stock, ours, message_goal)


def short(bench):
    sizes = [size for size in bench.options.sizes or (8, 512, 4 * KIB) if size <= 4 * KIB]
    stock, ours = beside_one_block(bench, ("latency",), sizes, each_apart(
        "vector-8", "vector-64", "triangle", "transpose", "plane-x", "struct", "random-8"))
    return table(("layout", "bytes"), stock, ours, lambda name: SHORT_US, "us")


def many(bench):
    sizes = [size for size in bench.options.sizes or (64 * KIB, MIB) if size <= MIB]
    stock, ours = beside_one_block(bench, ("bidir", "--no-verify"), sizes,
                                   each_apart("vector-8", "vector-64", "vector-4K"))
    return table(("layout", "bytes"), stock, ours, lambda name: 1.0)


def halos(bench):
    stock, ours = Figures(), Figures()
    boxes = ",".join(str(box) for box in bench.options.boxes if box <= 128)
    least = ("-t", "halo6,halo26", "--box", boxes)
    for _ in range(bench.options.rounds):
        for row in bench.perftest((*least, "--contiguous-only"), False):
            stock.add((row["test"], row["layout"]), row["contiguous"])
        for row in bench.perftest(least, True):
            ours.add((row["test"], row["layout"]), row["time"])
    return table(("exchange", "box"), stock, ours, lambda name: HALO[name[0]])


def stencil(bench):
    if not bench.options.stencil:
        return "Not measured: no --stencil."
    stock, ours = Figures(), Figures()
    boxes = ",".join(map(str, bench.options.boxes))
    for _ in range(bench.options.rounds):
        for dimension in "xyz":
            # The mover's trials compare stretches of exchanges: each kind comes many times in a row.
            least = ("--box", boxes, "--dimension", dimension, "--steps", 800, "--in-a-row", 200,
                     "--seconds", 40 * bench.options.seconds, "--no-verify")
            for way, figures in (("hand", stock), ("types", ours)):
                for row in bench.stencil((*least, "--way", way), way == "types"):
                    for kind in ("exchange", "step"):
                        if f"{kind}_us" in row:
                            figures.add((kind, dimension, row["box"]),
                                        {"median_us": row[f"{kind}_us"],
                                         "p95_us": row[f"{kind}_p95_us"]})
    return table(("what", "faces", "box"), stock, ours,
                 lambda name: BY_HAND.get(name[2]) if name[0] == "exchange" else None)


def numbers(text):
    return [int(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.05, help="of each figure's samples")
    parser.add_argument("--only", default=",".join(GROUPS))
    parser.add_argument("--stencil", help="the program")
    parser.add_argument("--memory", default="gpu", help="gpu or host")
    parser.add_argument("--boxes", type=numbers, default=[64, 128, 256])
    parser.add_argument("--sizes", type=numbers, help="bytes, in place of the usual ones")
    parser.add_argument("--keep", help="a directory for each command's rows")
    options = parser.parse_args()
    unknown = set(options.only.split(",")) - set(GROUPS)
    if unknown:
        parser.error(f"no group {', '.join(sorted(unknown))}; there are: {', '.join(GROUPS)}")
    if not os.environ.get("UCX_PLUGIN_PATH") and not os.environ.get("LD_PRELOAD"):
        parser.error("no plugin in this shell: source contrib/env.sh first")
    with tempfile.TemporaryDirectory() as scratch:
        directory = options.keep or scratch
        os.makedirs(directory, exist_ok=True)
        bench = Bench(options, directory)
        status = 0
        for group in options.only.split(","):
            try:
                print(f"## {group}\n\n{globals()[group](bench)}\n", flush=True)
            except Failed as problem:
                print(f"## {group}\n\nFailed: {problem}\n", flush=True)
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
