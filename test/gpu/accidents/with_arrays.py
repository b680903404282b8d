"""Random strided CuPy arrays or PyTorch tensors in GPU memory by the Python package ucx_cuda_nc, every
element and gap compared with NumPy's.

usage: [mpirun -np 2] python with_arrays.py moves|messages|streams cupy|torch NUMBER SEED"""
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

    def current(self):
        return self.cupy.cuda.get_current_stream().ptr

    def keep_busy(self):
        square = self.cupy.ones((1500, 1500), "f4")
        for _ in range(20):
            square = square @ square * 1e-4


class Torch:
    def __init__(self):
        self.torch = importlib.import_module("torch")

    def on_gpu(self, array):
        return self.torch.from_numpy(array).cuda()

    def back(self, array):
        return array.cpu().numpy()

    def on_a_stream(self):
        return self.torch.cuda.stream(self.torch.cuda.Stream())

    def current(self):
        return self.torch.cuda.current_stream().cuda_stream

    def keep_busy(self):
        square = self.torch.ones((1500, 1500), device="cuda")
        for _ in range(20):
            square = square @ square * 1e-4

    def graphs(self, source, index, packed):
        """A pack that is captured, and runs twice."""
        want, graph = source[index].clone(), self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            ucx_cuda_nc.pack(source[index], out=packed)
        for _ in range(2):
            packed.zero_()
            graph.replay()
            self.torch.cuda.synchronize()
            assert (packed == want).all(), "WRONG in a graph"

    def small_floats(self):
        if not hasattr(self.torch, "float8_e4m3fn"):
            return
        bytes_ = self.torch.arange(200, dtype=self.torch.uint8, device="cuda").reshape(10, 20)
        packed = ucx_cuda_nc.pack(bytes_.view(self.torch.float8_e4m3fn)[:, ::2])
        assert (packed.view(self.torch.uint8) == bytes_[:, ::2]).all(), "WRONG 8-bit floats"


class Named:
    """An array of a library that names the stream on which it may still be written."""

    def __init__(self, interface, stream):
        self.__cuda_array_interface__ = {**interface, "version": 3, "stream": stream}


class Lent:
    """An array that has DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


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


def streams(arrays, rng, number):
    """What one stream makes, while it is slow, is packed on another one."""
    for case in range(number):
        array, index = random_array(rng)
        what = f"case {case}: {array.dtype} {array.shape} {index}"
        source = arrays.on_gpu(numpy.zeros_like(array))
        made, out = arrays.on_gpu(array), arrays.on_gpu(numpy.ascontiguousarray(array[index] * 0))
        arrays.back(source), arrays.back(out)
        first, second = arrays.on_a_stream(), arrays.on_a_stream()
        with first:
            arrays.keep_busy()
            source += made
            its, part = arrays.current(), source[index]
            named = Named(part.__cuda_array_interface__, its)
            lent = Lent(part)
        with second:
            ucx_cuda_nc.pack(named, out=out, stream=arrays.current())
            assert (arrays.back(out) == array[index]).all(), "WRONG of another stream " + what
            out *= 0
            ucx_cuda_nc.pack(lent, out=out)
            del lent
            assert (arrays.back(out) == array[index]).all(), "WRONG by DLPack " + what
        del source, part, named
    if hasattr(arrays, "graphs"):
        source = arrays.on_gpu(numpy.arange(600.0).reshape(20, 30))
        index = slice(1, None, 2), slice(0, None, 3)
        arrays.graphs(source, index, arrays.on_gpu(numpy.zeros((10, 10))))
        arrays.small_floats()


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
    run = {"moves": moves, "messages": messages, "streams": streams}[what]
    run(arrays, numpy.random.default_rng(int(seed)), int(number))
    print(f"{what} of {library}: {number} RIGHT", flush=True)


main()
