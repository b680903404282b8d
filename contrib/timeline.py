#!/usr/bin/env python3
"""Draws one message's way through the processes, from files that UCX_CUDA_NC_TRACE wrote.

usage: timeline.py [-o PICTURE] [-b BYTES] [-n N] TRACE...

A message's events have one id in all files. Without -b and -n the last complete message of the
largest size is drawn; -n counts from 0 among messages of that size, -1 is the last. Prints its
events, in microseconds since the first; with -o draws them too (needs matplotlib).
"""
import argparse
import json
import os
import sys


def read(names):
    """All events of all files, by time, in microseconds."""
    events = []
    for name in names:
        try:
            with open(name, encoding="utf-8") as file:
                events += json.load(file)["traceEvents"]
        except (OSError, ValueError, KeyError, TypeError) as problem:
            sys.exit(f"{name}: not a trace: {problem}")
    return sorted(events, key=lambda event: event["ts"])


def messages(events):
    """id -> its events; only messages that both begin and end in every process that has them."""
    found = {}
    for event in events:
        found.setdefault(event["id"], []).append(event)
    return {
        name: own
        for name, own in found.items()
        if sum(e["ph"] == "b" for e in own) == sum(e["ph"] == "e" for e in own) > 0
    }


def size(events):
    return max((event.get("args", {}).get("bytes", 0) for event in events), default=0)


def size_of(text):
    """A number with K, M or G, for argparse."""
    shift = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper(), 0)
    return int(text[:-1] if shift else text) << shift


def spans(events):
    """(process, name, begin, end) of each begin with its end, (process, name, time, None) of marks."""
    open_spans, result = {}, []
    for event in events:
        key = event["pid"], event["name"]
        if event["ph"] == "b":
            open_spans.setdefault(key, []).append(event["ts"])
        elif event["ph"] == "e" and open_spans.get(key):
            result.append((*key, open_spans[key].pop(), event["ts"]))
        elif event["ph"] == "n":
            result.append((*key, event["ts"], None))
    return sorted(result, key=lambda one: one[2])


def draw(picture, title, rows, names):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    labels = list(dict.fromkeys((process, name) for process, name, _, _ in rows))
    labels.sort(key=lambda label: names[label[0]])
    figure, axes = pyplot.subplots(figsize=(9, 0.35 * len(labels) + 1.2))
    for process, name, begin, end in rows:
        at = labels.index((process, name))
        colour = f"C{list(names).index(process)}"
        if end is None:
            axes.plot([begin], [at], marker="|", markersize=12, color=colour)
        else:
            axes.barh(at, end - begin, left=begin, height=0.6, color=colour)
    axes.set_yticks(range(len(labels)), [f"{names[process]}: {name}" for process, name in labels])
    axes.invert_yaxis()
    axes.set_xlabel("microseconds")
    axes.set_title(title)
    axes.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    try:
        figure.savefig(picture, dpi=120)
    except OSError as failure:
        sys.exit(f"{picture} cannot be written: {failure.strerror or failure}")
    except ValueError as failure:  # a suffix that matplotlib does not know
        sys.exit(f"{picture} cannot be drawn: {failure}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", help="picture to draw (PNG, SVG, PDF)")
    parser.add_argument("-b", "--bytes", type=size_of, help="a message of this size, such as 4096 or "
                        "64K (default: of the largest)")
    parser.add_argument("-n", "--number", type=int, default=-1,
                        help="which message of that size, from 0 (default: -1, the last)")
    parser.add_argument("traces", nargs="+")
    chosen = parser.parse_args()
    all_messages = messages(read(chosen.traces))
    if not all_messages:
        sys.exit("no complete message in these files")
    sizes = sorted(set(map(size, all_messages.values())))
    wanted = sizes[-1] if chosen.bytes is None else chosen.bytes
    candidates = [own for own in all_messages.values() if size(own) == wanted]
    if not candidates:
        sys.exit(f"no message has {wanted} bytes; there are: {', '.join(map(str, sizes))}")
    try:
        events = candidates[chosen.number]
    except IndexError:
        sys.exit(f"there are {len(candidates)} messages of {wanted} bytes")
    start = events[0]["ts"]
    rows = [
        (process, name, begin - start, None if end is None else end - start)
        for process, name, begin, end in spans(events)
    ]
    processes = list(dict.fromkeys(event["pid"] for event in events))
    names = {process: f"process {i}" for i, process in enumerate(processes)}
    print(f"{wanted} bytes")
    for process, name, begin, end in rows:
        until = "" if end is None else f" to {end:8.1f}"
        print(f"{names[process]:10} {begin:8.1f}{until:12}  {name}")
    if chosen.output:
        draw(chosen.output, f"{wanted:,} bytes", rows, names)


if __name__ == "__main__":
    try:
        main()
        print(end="", flush=True)
    except OSError as failure:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more
        sys.exit(f"what was printed could not be written: {failure.strerror or failure}")
