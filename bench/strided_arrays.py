#!/usr/bin/env python3
"""Strided CuPy arrays and PyTorch tensors between two ranks of mpi4py: half a round trip.

usage: [python -m ucx_cuda_nc run --] mpirun -np 2 python bench/strided_arrays.py
           [--memory KIND,...] [--sizes 64K,1M,16M] [--rounds N]

kind         what is allocated
numpy        host memory
cupy         CuPy's own pool, of cudaMalloc
cupy-async   cudaMallocAsync
torch        as PYTORCH_CUDA_ALLOC_CONF says: by default cudaMalloc, with expandable_segments:True
             pieces of cuMemCreate, with backend:cudaMallocAsync the pool of CUDA

A message is the left half of a matrix of doubles with rows of 8 KiB: rows of 4 KiB with gaps of
4 KiB. "strided": mpi(matrix[:, :512]), without a copy. "by hand": the program copies to a contiguous
array, waits for its stream, sends that, and the other side copies back. "contiguous": as many bytes
without gaps. All kinds are sampled in turn; us, medians; "of the first" is strided by strided of the
first kind. Every element and gap is compared. Each rank has the GPU of its number, where there are
so many. Exit status 1 where an element is wrong."""
import argparse
import importlib
import sys
import time

import numpy
import ucx_cuda_nc
from mpi4py import MPI

WIDTH = 512  # doubles: of a row that is sent, and of a gap
ROW = WIDTH * 8
UNITS = {"K": 1 << 10, "M": 1 << 20}


class Numpy:
    def zeros(self, shape):
        return numpy.zeros(shape)

    def given(self, values):
        """NumPy's values in memory of this kind."""
        return values

    def assign(self, target, source):
        target[...] = source

    def wait(self):
        pass

    def on_host(self, array):
        return array.copy()


class Cupy(Numpy):
    def __init__(self, rank, is_async):
        self.cupy = importlib.import_module("cupy")
        self.cupy.cuda.Device(rank % self.cupy.cuda.runtime.getDeviceCount()).use()
        cuda = self.cupy.cuda
        self.pool = cuda.MemoryAsyncPool() if is_async else cuda.MemoryPool()

    def zeros(self, shape):
        with self.cupy.cuda.using_allocator(self.pool.malloc):
            array = self.cupy.zeros(shape)
        self.wait()
        return array

    def given(self, values):
        array = self.zeros(values.shape)
        array.set(values)
        return array

    def wait(self):
        self.cupy.cuda.get_current_stream().synchronize()

    def on_host(self, array):
        return self.cupy.asnumpy(array)


class Torch(Numpy):
    def __init__(self, rank):
        self.torch = importlib.import_module("torch")
        self.torch.cuda.set_device(rank % self.torch.cuda.device_count())

    def zeros(self, shape):
        array = self.torch.zeros(shape, dtype=self.torch.float64, device="cuda")
        self.wait()
        return array

    def given(self, values):
        return self.zeros(values.shape).copy_(self.torch.from_numpy(values))

    def wait(self):
        self.torch.cuda.current_stream().synchronize()

    def on_host(self, array):
        return array.cpu().numpy()


KINDS = {"numpy": lambda rank: Numpy(), "cupy": lambda rank: Cupy(rank, False),
         "cupy-async": lambda rank: Cupy(rank, True), "torch": Torch}


class Exchange:
    """Messages of one size between arrays of one kind."""

    def __init__(self, comm, arrays, size):
        self.comm, self.peer, self.arrays = comm, 1 - comm.rank, arrays
        shape = (size // ROW, WIDTH)
        self.matrix = arrays.zeros((shape[0], 2 * WIDTH))
        self.left = self.matrix[:, :WIDTH]
        self.whole = arrays.zeros(shape)
        self.values = numpy.arange(shape[0] * WIDTH, dtype=float).reshape(shape) + 1
        self.of_left, self.of_whole = ucx_cuda_nc.mpi(self.left), ucx_cuda_nc.mpi(self.whole)

    def round_trip(self, send, receive):
        if self.comm.rank == 0:
            send()
            receive()
        else:
            receive()
            send()

    def strided(self):
        self.round_trip(lambda: self.comm.Send(self.of_left, self.peer),
                        lambda: self.comm.Recv(self.of_left, self.peer))

    def contiguous(self):
        self.round_trip(lambda: self.comm.Send(self.of_whole, self.peer),
                        lambda: self.comm.Recv(self.of_whole, self.peer))

    def by_hand(self):
        def send():
            self.arrays.assign(self.whole, self.left)
            self.arrays.wait()
            self.comm.Send(self.of_whole, self.peer)

        def receive():
            self.comm.Recv(self.of_whole, self.peer)
            self.arrays.assign(self.left, self.whole)
            self.arrays.wait()

        self.round_trip(send, receive)

    def is_right(self):
        """Sends values there, which come back changed."""
        ours = self.comm.rank == 0
        if ours:
            self.arrays.assign(self.left, self.arrays.given(self.values))
            self.arrays.wait()
            self.comm.Send(self.of_left, self.peer)
        self.comm.Recv(self.of_left, self.peer)
        got = self.arrays.on_host(self.matrix)
        right = (got[:, :WIDTH] == self.values * (2 if ours else 1)).all() \
            and not got[:, WIDTH:].any()
        if not ours:
            self.arrays.assign(self.left, self.arrays.given(self.values * 2))
            self.arrays.wait()
            self.comm.Send(self.of_left, self.peer)
        return self.comm.allreduce(int(right)) == 2


def microseconds(comm, way, calls):
    comm.Barrier()
    begin = time.perf_counter()
    for _ in range(calls):
        way()
    return (time.perf_counter() - begin) / calls / 2 * 1e6


def median(values):
    return sorted(values)[len(values) // 2]


def measure(comm, kinds, size, rounds):
    """(whether all is right, us of each kind: strided, by hand, contiguous)"""
    exchanges = [Exchange(comm, arrays, size) for arrays in kinds]
    right = all([exchange.is_right() for exchange in exchanges])
    ways = [(exchange.strided, exchange.by_hand, exchange.contiguous) for exchange in exchanges]
    samples = [[[] for _ in of_one] for of_one in ways]
    calls = max(2, min(50, (64 << 20) // size))
    for number in range(rounds + 1):
        for kind, of_one in enumerate(ways):
            for way, call in enumerate(of_one):
                took = microseconds(comm, call, calls)
                if number != 0:
                    samples[kind][way].append(took)
    right &= all([exchange.is_right() for exchange in exchanges])
    return right, [[median(took) for took in of_one] for of_one in samples]


def bytes_of(word):
    number = int(word[:-1]) * UNITS[word[-1]] if word[-1] in UNITS else int(word)
    if number < ROW or number % ROW != 0:
        sys.exit(f"--sizes: {word} is no multiple of {ROW}")
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", default="numpy")
    parser.add_argument("--sizes", default="64K,1M,16M")
    parser.add_argument("--rounds", type=int, default=9)
    chosen = parser.parse_args()
    comm = MPI.COMM_WORLD
    if comm.size != 2:
        sys.exit(f"two ranks are wanted, not {comm.size}")
    names = chosen.memory.split(",")
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        sys.exit(f"--memory: no kind is called {unknown[0]}; there are {', '.join(KINDS)}")
    kinds = [KINDS[name](comm.rank) for name in names]
    if comm.rank == 0:
        print(f"{'memory':12} {'bytes':>9} {'strided':>9} {'by hand':>9} {'contiguous':>10} "
              f"{'of by hand':>10} {'of contiguous':>13} {'of the first':>12}  right", flush=True)
    wrong = False
    for size in map(bytes_of, chosen.sizes.split(",")):
        right, medians = measure(comm, kinds, size, chosen.rounds)
        wrong |= not right
        for name, (strided, by_hand, contiguous) in zip(names, medians):
            if comm.rank == 0:
                print(f"{name:12} {size:9d} {strided:9.1f} {by_hand:9.1f} {contiguous:10.1f} "
                      f"{strided / by_hand:10.2f} {strided / contiguous:13.2f} "
                      f"{strided / medians[0][0]:12.2f}  {'yes' if right else 'NO'}", flush=True)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
