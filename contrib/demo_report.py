#!/usr/bin/env python3
"""Table and picture of the demo: half round trips of derived datatypes, stock against ours.

Reads the JSON lines of mpi_layouts. "+-" is half the range from the 10th to the 90th percentile of
the half round trips, over their median. A speed-up is "within noise" where these ranges of stock
and ours overlap. Exit status 1 where ours failed or delivered a wrong byte.
"""
import argparse
import json
import sys


def read(path):
    rows = {}
    try:
        with open(path) as file:
            for line in file:
                row = json.loads(line)
                rows[row["layout"]] = row
    except FileNotFoundError:
        pass
    return rows


def verdict(row):
    """Text for a run that has no valid time, or None."""
    if row is None:
        return "not run"
    if "error" in row:
        return row["error"]
    if row["wrong_bytes"]:
        return "WRONG BYTES"
    return None


def cell(row):
    why = verdict(row)
    if why and "microseconds" in (row or {}):
        return f"{row['microseconds']:,.0f} {why}"
    return why or f"{row['microseconds']:,.0f}"


def interval(row):
    """10th and 90th percentile, in microseconds; None where the program has not told them."""
    if verdict(row) is None and "spread_low_us" in row and "spread_high_us" in row:
        return row["spread_low_us"], row["spread_high_us"]
    return None


def noise(row):
    low_high = interval(row)
    if low_high is None:
        return "-"
    return f"+-{(low_high[1] - low_high[0]) / 2 / row['microseconds']:.0%}"


def speed_up(stock, ours):
    if verdict(stock) is not None or verdict(ours) is not None:
        return "-"
    text = f"{stock['microseconds'] / ours['microseconds']:.2f}x"
    a, b = interval(stock), interval(ours)
    if a and b and a[0] <= b[1] and b[0] <= a[1]:
        text += " within noise"
    return text


def bandwidth_errors(row):
    """How far the bandwidth's error bar reaches down and up, in GB/s."""
    low_high = interval(row)
    if low_high is None:
        return 0, 0
    middle = row["bytes"] / row["microseconds"] / 1e3
    slowest, fastest = (row["bytes"] / time / 1e3 for time in reversed(low_high))
    return max(middle - slowest, 0), max(fastest - middle, 0)


def draw(names, stock, ours, contiguous, memory, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 0.42 * len(names) + 1.8))
    places = range(len(names))

    def bandwidth(row):
        return row["bytes"] / row["microseconds"] / 1e3 if verdict(row) is None else 0

    for shift, rows, label, color in (
        (-0.2, stock, "Open MPI, stock", "#b8bcc4"),
        (0.2, ours, "Open MPI with ucx-cuda-nc", "#2a6f97"),
    ):
        values = [bandwidth(rows.get(n)) for n in names]
        errors = [bandwidth_errors(rows.get(n)) for n in names]
        axes.barh([p + shift for p in places], values, 0.38, label=label, color=color,
                  xerr=list(zip(*errors)), error_kw={"elinewidth": 0.8, "ecolor": "#555"})
        for place, name, value, (_, up) in zip(places, names, values, errors):
            why = verdict(rows.get(name))
            text = f" {value:.1f}" if why is None else f" {why}"
            axes.text(value + up, place + shift, text, va="center", fontsize=7,
                      color="#444" if why is None else "#b02a30")
    if contiguous:
        axes.axvline(contiguous, color="#777", linewidth=0.8, linestyle="--",
                     label="contiguous, with ucx-cuda-nc")
    axes.set_yticks(list(places), names)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("GB/s of payload (higher is better); error bars: 10th to 90th percentile")
    axes.set_title(f"Derived datatypes between two ranks, {memory} memory")
    axes.legend(fontsize=8, loc="lower right")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stock", required=True)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--png")
    arguments = parser.parse_args()
    stock, ours = read(arguments.stock), read(arguments.ours)
    names = list(dict.fromkeys([*stock, *ours]))
    if not names:
        sys.exit("no results")

    reference = ours.get("contiguous")
    contiguous = None
    if verdict(reference) is None:
        contiguous = reference["bytes"] / reference["microseconds"] / 1e3
    memory = next(iter({**stock, **ours}.values()))["memory"]
    print(f"Half round trip in microseconds between two ranks, {memory} memory")
    print(f"{'layout':<14} {'MB':>6} {'stock':>22} {'+-':>6} {'ours':>22} {'+-':>6} "
          f"{'of contiguous':>14}  {'bytes':<9}  speed-up")
    failed = False
    for name in names:
        a, b = stock.get(name), ours.get(name)
        good = verdict(b) is None
        failed |= not good
        size = next((r["bytes"] for r in (b, a) if r and "bytes" in r), 0)
        ratio = "-"
        if good and contiguous:
            ratio = f"{b['bytes'] / b['microseconds'] / 1e3 / contiguous:.0%}"
        print(f"{name:<14} {size / 1e6:>6.1f} {cell(a):>22} {noise(a):>6} {cell(b):>22} "
              f"{noise(b):>6} {ratio:>14}  {'all right' if good else 'NOT RIGHT':<9}  "
              f"{speed_up(a, b)}")
    print("Every byte and every gap was compared on both sides; 'bytes' speaks of ours.")
    if any(map(interval, [*stock.values(), *ours.values()])):
        print("+-: half the range from the 10th to the 90th percentile, over the median. Within "
              "noise: the ranges overlap.")
    if arguments.png:
        draw(names, stock, ours, contiguous, memory, arguments.png)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
