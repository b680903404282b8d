"""Arrays for the tests: NumPy's in host memory, and stand-ins for GPU arrays in simulated memory that
speak the CUDA Array Interface or DLPack. NumPy is the oracle of all of them."""
import ctypes
import os

import numpy
from ucx_cuda_nc import _arrays, _library


def product():
    loaded = _library.loaded()
    loaded.cuda_nc_sim_malloc.restype = ctypes.c_void_p
    loaded.cuda_nc_sim_malloc.argtypes = [ctypes.c_size_t]
    loaded.cuda_nc_sim_memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    loaded.cuda_nc_sim_stream_create.restype = ctypes.c_void_p
    loaded.cuda_nc_sim_stream_create.argtypes = [ctypes.c_int]
    loaded.cuda_nc_sim_stream_destroy.argtypes = [ctypes.c_void_p]
    return loaded


class Simulated:
    """A view of simulated GPU memory; indexed as NumPy's."""

    def __init__(self, like, base=None, model=None, stream=None):
        # `model` is a NumPy view that lies in `like` as this one does in the GPU's memory.
        self.like, self.model, self.stream = like, like if model is None else model, stream
        self.base = base or product().cuda_nc_sim_malloc(max(like.nbytes, 1))
        assert self.base, "no simulated GPU memory"

    def __getitem__(self, index):
        return type(self)(self.like, self.base, self.model[index], self.stream)

    @property
    def address(self):
        return self.base + (self.model.__array_interface__["data"][0] -
                            self.like.__array_interface__["data"][0])

    def write(self, array):
        array = numpy.ascontiguousarray(array)
        product().cuda_nc_sim_memcpy(self.base, array.ctypes.data, array.nbytes)

    def read(self):
        array = numpy.empty_like(self.like)
        product().cuda_nc_sim_memcpy(array.ctypes.data, self.base, array.nbytes)
        return array


class Interface(Simulated):
    @property
    def __cuda_array_interface__(self):
        return {"shape": self.model.shape, "strides": self.model.strides, "version": 3,
                "typestr": self.model.dtype.str, "data": (self.address, False),
                "stream": self.stream}


class Dlpack(Simulated):
    versioned = True

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream=None, max_version=None):
        assert isinstance(stream, int) and stream, "0 is no name of a stream"
        if max_version is not None and not self.versioned:
            raise TypeError("max_version is not known")
        ndim = self.model.ndim
        numbers = ctypes.c_int64 * max(ndim, 1)
        code = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}[self.model.dtype.kind]
        size = self.model.itemsize
        self.kept = [numbers(*self.model.shape), numbers(*(s // size for s in self.model.strides))]
        tensor = _arrays._Tensor(self.base, 2, 0, ndim, code, 8 * size, 1, self.kept[0],
                                 self.kept[1], self.address - self.base)
        name = b"dltensor"
        if self.versioned:
            tensor, name = _arrays._Versioned(1, 0, None, None, 0, tensor), b"dltensor_versioned"
        self.kept += [tensor, name]
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p,
                                                       ctypes.c_void_p]
        return new(ctypes.addressof(tensor), name, None)


class OldDlpack(Dlpack):
    versioned = False


class Host:
    def __init__(self, like, array=None):
        self.array = numpy.empty_like(like) if array is None else array

    def __getitem__(self, index):
        return self.array[index]

    def write(self, array):
        self.array[...] = array

    def read(self):
        return self.array.copy()


KINDS = {"host": Host, "interface": Interface, "dlpack": Dlpack, "old": OldDlpack}
TYPES = ["f8", "i1", "?", "c8", "c16", "u2", "f2", "f4", "i8"]
ODD_TYPES = [">i4", "i4,f8", "S5", "M8[s]", "i1,i4"]


def random_array(rng, types):
    """(an array of random bytes, an index that makes a strided view of it)."""
    dims = int(rng.integers(1, 5))
    shape = tuple(int(n) for n in rng.integers(1, 8, dims) * 3)
    dtype = numpy.dtype(str(rng.choice(types)))
    count = int(numpy.prod(shape))
    array = numpy.frombuffer(rng.bytes(count * dtype.itemsize), numpy.uint8)
    if dtype.kind == "b":
        array = array & 1
    array = array.copy().view(dtype).reshape(shape)
    index = tuple(slice(int(rng.integers(0, 2)), int(rng.integers(n // 2, n + 1)),
                        int(rng.choice([1, 1, 2, 3]))) if rng.random() < .7 else
                  slice(None, None, int(rng.choice([-1, -2, 1]))) for n in shape)
    return array, index


def same(left, right):
    return left.tobytes() == right.tobytes()


def seed():
    return int(os.environ.get("CUDA_NC_SEED", 20261124))
