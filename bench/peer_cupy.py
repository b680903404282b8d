#!/usr/bin/env python3
"""Times strided copies by CuPy, a peer of `nc_perftest pack -s standard` where an array view says the
layout: packing is a copy from the view to contiguous memory, unpacking the other way.

Prints us (medians of 11 samples of 20 calls) and the ratio to a plain copy of the same bytes, which is
sampled in turn with them. Usage: peer_cupy.py
"""

import statistics

import cupy as cp
from cupy.lib.stride_tricks import as_strided

CALLS, SAMPLES = 20, 11


def view(shape, strides, dtype=cp.float64):
    """An array of `shape` whose dims lie `strides` bytes apart, in memory of its own."""
    item = cp.dtype(dtype).itemsize
    size = sum((n - 1) * s for n, s in zip(shape, strides)) + item
    return as_strided(cp.zeros(size // item, dtype), shape, strides)


def layouts():
    yield "sub-matrix-4000", view((4000, 4000), (64000, 8))
    yield "sub-matrix-8000", view((8000, 8000), (128000, 8))
    yield "transpose-1024", view((1024, 1024), (8, 8192))
    yield "transpose-4096", view((4096, 4096), (8, 32768))
    yield "vector-8B", view((1 << 25,), (16,))
    yield "vector-64B", view((1 << 22, 8), (128, 8))
    yield "vector-256B", view((1 << 20, 32), (512, 8))
    yield "vector-4KiB", view((1 << 16, 512), (8192, 8))
    yield "vector-8B-stride-1000", view((1 << 21,), (1000,))
    yield "face-x", view((512, 512, 3), (512 * 512 * 8, 4096, 8))
    yield "face-y", view((512, 3, 512), (512 * 512 * 8, 4096, 8))
    yield "subarray-4D", view((64, 32, 32, 64), (64 * 64 * 512, 64 * 512, 512, 4), cp.float32)
    yield "vector-12B", view((1398101, 3), (20, 4), cp.float32)


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
