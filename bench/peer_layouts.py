"""The strided layouts of `nc_perftest pack -s standard` that an array library can say by a view:
name, shape, strides in bytes, bytes of an element. For peer_cupy.py and peer_torch.py."""

LAYOUTS = (
    ("sub-matrix-4000", (4000, 4000), (64000, 8), 8),
    ("sub-matrix-8000", (8000, 8000), (128000, 8), 8),
    ("transpose-1024", (1024, 1024), (8, 8192), 8),
    ("transpose-4096", (4096, 4096), (8, 32768), 8),
    ("vector-8B", (1 << 25,), (16,), 8),
    ("vector-64B", (1 << 22, 8), (128, 8), 8),
    ("vector-256B", (1 << 20, 32), (512, 8), 8),
    ("vector-4KiB", (1 << 16, 512), (8192, 8), 8),
    ("vector-8B-stride-1000", (1 << 21,), (1000,), 8),
    ("face-x", (512, 512, 3), (512 * 512 * 8, 4096, 8), 8),
    ("face-y", (512, 3, 512), (512 * 512 * 8, 4096, 8), 8),
    ("subarray-4D", (64, 32, 32, 64), (64 * 64 * 512, 64 * 512, 512, 4), 4),
    ("vector-12B", (1398101, 3), (20, 4), 4),
)


def elements_spanned(shape, strides, item):
    """Elements of `item` bytes from the first of the layout to its last."""
    return sum((n - 1) * s for n, s in zip(shape, strides)) // item + 1
