#!/usr/bin/env python3
"""Times strided copies by CuPy, a peer of `nc_perftest pack -s standard` where an array view says the
layout: packing is a copy from the view to contiguous memory, unpacking the other way.

Prints us (medians of 11 samples of 20 calls) and the ratio to a plain copy of the same bytes, which is
sampled in turn with them. Usage: peer_cupy.py
"""

import statistics

import cupy as cp
from cupy.lib.stride_tricks import as_strided

from peer_layouts import LAYOUTS, elements_spanned

CALLS, SAMPLES = 20, 11


def layouts():
    """Each layout as an array in memory of its own."""
    for name, shape, strides, item in LAYOUTS:
        dtype = cp.float64 if item == 8 else cp.float32
        memory = cp.zeros(elements_spanned(shape, strides, item), dtype)
        yield name, as_strided(memory, shape, strides)


def sample(stream, target, source):
    begin, end = cp.cuda.Event(), cp.cuda.Event()
    begin.record(stream)
    for _ in range(CALLS):
        cp.copyto(target, source)
    end.record(stream)
    end.synchronize()
    return 1e3 * cp.cuda.get_elapsed_time(begin, end) / CALLS


def main():
    print(f"# CuPy {cp.__version__}, {cp.cuda.runtime.getDeviceProperties(0)['name'].decode()}")
    with cp.cuda.Stream(non_blocking=True) as stream:
        for name, laid_out in layouts():
            packed = cp.zeros(laid_out.shape, laid_out.dtype)
            other = cp.zeros_like(packed)
            for direction, target, source in (("pack", packed, laid_out),
                                              ("unpack", laid_out, packed)):
                for _ in range(3):
                    sample(stream, target, source)
                    sample(stream, other, packed)
                times, plain = [], []
                for _ in range(SAMPLES):
                    times.append(sample(stream, target, source))
                    plain.append(sample(stream, other, packed))
                time, copy = statistics.median(times), statistics.median(plain)
                print(f"{name:<24} {direction:<6} {time:9.1f} {copy:9.1f} {time / copy:6.2f}")
            del laid_out, packed, other
            cp.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
