"""Random strided CuPy arrays or PyTorch tensors in GPU memory by the Python package ucx_cuda_nc, every
element and gap compared with NumPy's.

usage: [mpirun -np 2] python with_arrays.py moves|messages cupy|torch NUMBER SEED"""
import importlib
import sys

import numpy

import ucx_cuda_nc

TYPES = ("u1", "i2", "f4", "f8", "c16")


class Cupy:
    def __init__(self):
        self.cupy = importlib.import_module("cupy")

    def on_gpu(self, array):
        return self.cupy.asarray(array)

    def back(self, array):
        return self.cupy.asnumpy(array)

    def on_a_stream(self):
        return self.cupy.cuda.Stream(non_blocking=True)


class Torch:
    def __init__(self):
        self.torch = importlib.import_module("torch")

    def on_gpu(self, array):
        return self.torch.from_numpy(array).cuda()

    def back(self, array):
        return array.cpu().numpy()

    def on_a_stream(self):
        return self.torch.cuda.stream(self.torch.cuda.Stream())


def random_array(rng):
    """An array, and an index of a strided part that both libraries understand."""
    shape = tuple(int(n) for n in rng.integers(1, 40, rng.integers(1, 5)))
    array = rng.integers(0, 100, shape).astype(TYPES[rng.integers(len(TYPES))])
    index = tuple(slice(int(rng.integers(0, n)), n, int(rng.integers(1, 4))) for n in shape)
    return array, index


def moves(arrays, rng, number):
    for case in range(number):
        array, index = random_array(rng)
        what = f"case {case}: {array.dtype} {array.shape} {index}"
        source, target = arrays.on_gpu(array), arrays.on_gpu(numpy.zeros_like(array))
        want = numpy.zeros_like(array)
        want[index] = array[index]
        with arrays.on_a_stream():
            # The current stream is the one on which these are ordered.
            source += 1
            source -= 1
            packed = ucx_cuda_nc.pack(source[index])
            ucx_cuda_nc.unpack(packed, target[index])
            assert (arrays.back(target) == want).all(), "WRONG unpacked " + what
            target *= 0
            ucx_cuda_nc.copy(source[index], target[index])
            assert (arrays.back(target) == want).all(), "WRONG copied " + what
        assert (arrays.back(packed).ravel().view(array.dtype) == array[index].ravel()).all(), \
            "WRONG packed " + what


def messages(arrays, rng, number):
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
    peer = 1 - comm.rank
    for case in range(number):
        array, index = random_array(rng)
        what = f"case {case}: {array.dtype} {array.shape} {index}"
        buffer = arrays.on_gpu(array if comm.rank == 0 else numpy.zeros_like(array))
        want = numpy.zeros_like(array)
        want[index] = array[index]
        if comm.rank == 0:
            comm.Send(ucx_cuda_nc.mpi(buffer[index]), peer)
            buffer *= 0
            comm.Recv(ucx_cuda_nc.mpi(buffer[index]), peer)
        else:
            comm.Recv(ucx_cuda_nc.mpi(buffer[index]), peer)
            comm.Send(ucx_cuda_nc.mpi(buffer[index]), peer)
        assert (arrays.back(buffer) == want).all(), "WRONG received " + what


def main():
    what, library, number, seed = sys.argv[1:5]
    arrays = {"cupy": Cupy, "torch": Torch}[library]()
    {"moves": moves, "messages": messages}[what](arrays, numpy.random.default_rng(int(seed)), int(number))
    print(f"{what} of {library}: {number} RIGHT", flush=True)


main()
