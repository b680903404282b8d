#!/usr/bin/env python3
"""Draws docs/figures/paths.svg: how a strided message gets from one GPU to the other.

usage: docs/figures/paths.py            writes paths.svg beside this file
       docs/figures/paths.py --print    prints it
"""
import pathlib
import sys

WIDTH, HEIGHT = 760, 372
TEXT, FAINT, BLOCK, COPY, KERNEL = "#1f2328", "#8c959f", "#0969da", "#cf222e", "#1a7f37"
parts = []


def text(x, y, words, size=13, color=TEXT, anchor="start", weight="normal"):
    parts.append(f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}" '
                 f'text-anchor="{anchor}" font-weight="{weight}">{words}</text>')


def box(x, y, width, height, label):
    parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="#ffffff" '
                 f'stroke="{FAINT}"/>')
    text(x + width / 2, y - 6, label, 12, FAINT, "middle")


def blocks(x, y, number, gap):
    """`number` blocks of memory, 12 wide; with a gap they are a strided layout."""
    for i in range(number):
        parts.append(f'<rect x="{x + i * (12 + gap)}" y="{y}" width="12" height="16" '
                     f'fill="{BLOCK}"/>')


def arrow(x1, y1, x2, y2, color, width=2):
    parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{color}" '
                 f'stroke-width="{width}" marker-end="url(#{color[1:]})"/>')


def row(y, title, words):
    text(12, y, title, 14, weight="bold")
    text(12, y + 18, words, 12, FAINT)


def sides(y):
    box(12, y, 170, 44, "sender's GPU")
    box(578, y, 170, 44, "receiver's GPU")
    blocks(26, y + 14, 6, 14)
    blocks(592, y + 14, 6, 14)


def host(y, label="pinned host memory"):
    box(262, y, 236, 44, label)
    blocks(344, y + 14, 6, 0)


def draw():
    row(22, "Stock MPI", "a copy and a wait for each block, or a crash where MPI knows no GPU")
    sides(66)
    host(66, "host memory")
    for i in range(6):
        arrow(186, 73 + 6 * i, 258, 73 + 6 * i, COPY, 1)
        arrow(502, 73 + 6 * i, 574, 73 + 6 * i, COPY, 1)

    row(148, "Plugin, UCX's stock transports", "one kernel gathers a fragment, one scatters it")
    sides(192)
    host(192)
    arrow(186, 214, 258, 214, KERNEL, 4)
    arrow(502, 214, 574, 214, KERNEL, 4)

    row(274, "Plugin, transport cuda_nc",
        "straight across NVLink: one kernel or copy engine of the receiver, or a kernel on each GPU")
    sides(318)
    arrow(186, 340, 574, 340, KERNEL, 4)
    text(380, 334, "pull, copy or pipe", 12, KERNEL, "middle")


def svg():
    heads = "".join(
        f'<marker id="{color[1:]}" markerUnits="userSpaceOnUse" markerWidth="10" markerHeight="10" '
        f'refX="8" refY="5" orient="auto"><path d="M0,0 L10,5 L0,10 z" fill="{color}"/></marker>'
        for color in (COPY, KERNEL))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" font-family="Helvetica, Arial, sans-serif">\n'
            f'<defs>{heads}</defs>\n<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n'
            + "\n".join(parts) + "\n</svg>\n")


if __name__ == "__main__":
    draw()
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(svg())
    else:
        pathlib.Path(__file__).with_name("paths.svg").write_text(svg())
