#!/usr/bin/env python3
"""Pictures of nc_perftest's result files (--json of p2p, mpi and pack).

One picture for each test of p2p and mpi: latency or bandwidth over the message's size and the ratio
to contiguous memory, a line for each layout, file and transport. One for pack: the time of each
layout over that of a plain copy; where layouts were measured at several sizes one more, of these,
over size.

    perftest_plot.py a.json                         # a-latency.png, a-bandwidth.png, ...
    perftest_plot.py old.json new.json --label old --label new --output compared
"""
import argparse
import json
import os
import re
import sys

STYLES = ["-", "--", ":", "-."]


def read(path):
    try:
        with open(path) as file:
            rows = json.load(file)["rows"]
    except (OSError, ValueError, KeyError, TypeError) as failure:
        sys.exit(f"{path}: no result file of nc_perftest ({failure})")
    return [row for row in rows if "time" in row]


def lines_of(rows):
    """{(layout, transport or direction): rows by size}; of all pairs the slowest."""
    lines = {}
    for row in rows:
        way = row.get("direction", row.get("transport", ""))
        line = lines.setdefault((row["layout"], way), {})
        known = line.get(row["bytes"])
        if known is None or known["time"]["median_us"] < row["time"]["median_us"]:
            line[row["bytes"]] = row
    return {key: [line[size] for size in sorted(line)] for key, line in lines.items()}


def size_text(value, _=None):
    for unit in ("", "K", "M", "G"):
        if value < 1024:
            break
        value /= 1024
    return f"{value:g}{unit}"


def finish(plt, figure, path):
    figure.tight_layout()
    try:
        figure.savefig(path, dpi=130)
    except OSError as failure:
        sys.exit(f"{path} cannot be written: {failure.strerror or failure}")
    plt.close(figure)


def draw_over_size(plt, test, files, path):
    is_time = test in ("latency", "pack") or test.startswith("halo")
    reference, of_what = (("plain_copy", "a plain copy of the same bytes") if test == "pack" else
                          ("contiguous", "contiguous memory"))
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(9, 9), sharex=True)
    colors = {}
    for (label, rows), style in zip(files, STYLES * len(files)):
        for (layout, way), line in lines_of(rows).items():
            name = layout if not test.startswith("halo") else re.sub("^box-[0-9]+", "boxes", layout)
            color = colors.setdefault((name, way), f"C{len(colors) % 10}")
            sizes = [row["bytes"] for row in line]
            said = {"y": ", with transport", "n": ", without", "": ""}.get(way, f", {way}")
            text = f"{label}{': ' if label else ''}{name}{said}"

            def values(which):
                return [row[which]["median_us"] if is_time else row[
                    "gb_per_s" if which == "time" else "contiguous_gb_per_s"] for row in line]

            upper.plot(sizes, values("time"), style, color=color, marker=".", label=text)
            if is_time:
                upper.fill_between(sizes, [row["time"]["p5_us"] for row in line],
                                   [row["time"]["p95_us"] for row in line], color=color, alpha=0.12)
            upper.plot(sizes, values(reference), style, color="#999", linewidth=0.7)
            lower.plot(sizes, [row["ratio"] for row in line], style, color=color, marker=".")
    upper.set_ylabel("microseconds, 5th to 95th percentile" if is_time else "GB/s")
    upper.set_yscale("log")
    upper.set_title(f"{test} (grey: {of_what})")
    upper.legend(fontsize=7)
    lower.axhline(1, color="#999", linewidth=0.7)
    lower.set_ylabel(f"time, over that of {of_what}")
    lower.set_ylim(bottom=0)
    lower.set_xlabel("packed bytes" if test == "pack" else "bytes of a message")
    lower.set_xscale("log", base=2)
    lower.xaxis.set_major_formatter(size_text)
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    finish(plt, figure, path)


def split_by_sizes(files):
    """Files with the rows of layouts that have several sizes, and with the others."""
    sizes = {}
    for _, rows in files:
        for row in rows:
            sizes.setdefault(row["layout"], set()).add(row.get("bytes", 0))

    def those(several):
        return [(label, [row for row in rows if (len(sizes[row["layout"]]) > 1) == several])
                for label, rows in files]

    return those(True), those(False)


def draw_packing(plt, files, path):
    names = list(dict.fromkeys(f"{row['layout']} {row['direction']}"
                               for _, rows in files for row in rows))
    figure, axes = plt.subplots(figsize=(9, 0.3 * len(names) * len(files) + 1.5))
    height = 0.8 / len(files)
    for index, (label, rows) in enumerate(files):
        ratios = {f"{row['layout']} {row['direction']}": row["ratio"] for row in rows}
        places = [place + index * height for place in range(len(names))]
        axes.barh(places, [ratios.get(name, 0) for name in names], height, label=label or None)
    axes.axvline(1, color="#999", linewidth=0.7)
    axes.set_yticks([place + 0.4 - height / 2 for place in range(len(names))], names, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("time, over that of a plain copy of the same bytes")
    if any(label for label, _ in files):
        axes.legend()
    finish(plt, figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="result files; one with lines of its own each")
    parser.add_argument("--label", action="append", default=[], help="a file's name in the legend")
    parser.add_argument("--output", help="the pictures' names begin so (default: the first file's)")
    arguments = parser.parse_args()
    several = len(arguments.files) > 1
    labels = arguments.label + [os.path.splitext(os.path.basename(path))[0] if several else ""
                                for path in arguments.files[len(arguments.label):]]
    results = [(label, read(path)) for label, path in zip(labels, arguments.files)]
    output = arguments.output or os.path.splitext(arguments.files[0])[0]
    if not any(rows for _, rows in results):
        sys.exit("no results to draw")

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for test in dict.fromkeys(row.get("test", "pack") for _, rows in results for row in rows):
        of_test = [(label, [row for row in rows if row.get("test", "pack") == test])
                   for label, rows in results]
        path = f"{output}-{test}.png"
        if test != "pack":
            draw_over_size(plt, test, of_test, path)
            print(path)
            continue
        over_size, of_one_size = split_by_sizes(of_test)
        if any(rows for _, rows in of_one_size):
            draw_packing(plt, of_one_size, path)
            print(path)
        if any(rows for _, rows in over_size):
            path = f"{output}-pack-sizes.png"
            draw_over_size(plt, test, over_size, path)
            print(path)


if __name__ == "__main__":
    try:
        main()
        print(end="", flush=True)
    except OSError as failure:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more
        sys.exit(f"what was printed could not be written: {failure.strerror or failure}")
