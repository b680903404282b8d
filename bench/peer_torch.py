#!/usr/bin/env python3
"""Times strided copies and random rows by PyTorch, a peer of `nc_perftest pack -s standard` where a
tensor says the layout. Strided: packing is a copy from the view to contiguous memory, unpacking the
other way. Random rows: packing is index_select, unpacking index_copy_, with every second row taken.

Prints us (the least of 7 samples of 20 calls) and the ratio to a plain copy of the same bytes, which
is sampled in turn with them. Usage: peer_torch.py
"""

from functools import partial

import torch

from peer_layouts import LAYOUTS, elements_spanned

CALLS, SAMPLES = 20, 7


def layouts():
    """Each layout as a tensor in memory of its own."""
    for name, shape, strides, item in LAYOUTS:
        dtype = torch.float64 if item == 8 else torch.float32
        memory = torch.zeros(elements_spanned(shape, strides, item), dtype=dtype, device="cuda")
        yield name, torch.as_strided(memory, shape, tuple(s // item for s in strides))


def random_rows():
    for name, count, block in (("random-8B", 1 << 20, 8), ("random-64B", 1 << 20, 64),
                               ("random-1KiB", 1 << 18, 1024)):
        shape = (2 * count, block // 8) if block > 8 else (2 * count,)
        yield (name, torch.zeros(shape, dtype=torch.int64, device="cuda"),
               2 * torch.randperm(count, device="cuda"))


def sample(call):
    begin = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(CALLS):
        call()
    end.record()
    end.synchronize()
    return 1e3 * begin.elapsed_time(end) / CALLS


def show(name, packed, pack, unpack):
    copy = partial(torch.zeros_like(packed).copy_, packed)
    for direction, call in (("pack", pack), ("unpack", unpack)):
        for _ in range(3):
            sample(call)
            sample(copy)
        times, plain = [], []
        for _ in range(SAMPLES):
            times.append(sample(call))
            plain.append(sample(copy))
        time, least = min(times), min(plain)
        print(f"{name:<24} {direction:<6} {time:9.1f} {least:9.1f} {time / least:6.2f}")


def show_strided():
    for name, laid_out in layouts():
        packed = torch.zeros(laid_out.shape, dtype=laid_out.dtype, device="cuda")
        show(name, packed, partial(packed.copy_, laid_out), partial(laid_out.copy_, packed))


def show_random():
    for name, rows, places in random_rows():
        packed = rows.index_select(0, places)
        show(name, packed, partial(torch.index_select, rows, 0, places, out=packed),
             partial(rows.index_copy_, 0, places, packed))


def main():
    torch.manual_seed(5)
    print(f"# PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    show_strided()
    show_random()


if __name__ == "__main__":
    main()
