"""Stand-ins for PyTorch and CuPy with two GPUs each: tensors without memory that have the current
streams and devices of the real ones. In place of the C API there is a record of the streams it got.

PyTorch's and CuPy's rules that are followed here: streams are those of a device, only a GPU has
some, and a new array is of the current stream of its device."""
import contextlib
import os
import sys
import types

import numpy
from ucx_cuda_nc import _library


class Record:
    """The C API; `streams` of pack, unpack and copy, those that they waited for, and what was kept
    for them."""

    def __init__(self):
        self.streams, self.awaited, self.kept = [], [], []

    def cuda_nc_layout_create_strided(self, *_):
        return 0

    def cuda_nc_layout_destroy(self, _):
        pass

    def cuda_nc_pack(self, *arguments):
        self.streams.append(arguments[-1])
        return 0

    cuda_nc_unpack = cuda_nc_copy = cuda_nc_pack


def record():
    """It is no simulated GPU: that has no stream of each thread."""
    os.environ.pop("UCX_CUDA_NC_GPU", None)
    made = Record()
    _library.loaded = lambda: made
    _library.wait_for = lambda stream, other, _: made.awaited.append((stream, other))
    _library.keep_until_done = lambda owners, stream, _: made.kept.append((stream, owners))
    return made


def described(array):
    """Version 2 of the CUDA Array Interface, at an address that nobody reads."""
    return {"shape": array.shape, "strides": array.strides, "typestr": array.dtype.str,
            "data": (4096, False), "version": 2}


class Stream:
    def __init__(self, number):
        self.cuda_stream = self.ptr = number


class Streams:
    """The current stream of each device."""

    def __init__(self):
        self.numbers = {}

    @contextlib.contextmanager
    def use(self, device, number):
        before = self.numbers.get(device, 0)
        self.numbers[device] = number
        yield
        self.numbers[device] = before


# ---- PyTorch

class Torch:
    """The module. A device is "cpu" or the number of a GPU."""

    def __init__(self):
        self.streams, self.contiguous_format = Streams(), "contiguous"
        self.Tensor = Tensor
        self.cuda = types.SimpleNamespace(
            current_stream=self._current_stream, default_stream=lambda device: (device, 0),
            ExternalStream=self._external, stream=lambda stream: self.streams.use(*stream))
        sys.modules["torch"] = self

    def _current_stream(self, device):
        if device == "cpu":
            raise ValueError("Expected a cuda device, but got: cpu")
        return Stream(self.streams.numbers.get(device, 0))

    def _external(self, number, device):
        assert number, "PyTorch makes a new stream of 0"
        return device, number

    def empty_like(self, tensor, memory_format):
        assert memory_format == self.contiguous_format
        made = type(tensor)(numpy.empty(tensor.array.shape, tensor.array.dtype), tensor.device)
        made.made_on = self.streams.numbers.get(tensor.device, 0)
        return made


class Tensor:
    """The bits are PyTorch's lazy ones."""

    def __init__(self, array, device, conj=False, neg=False):
        self.array, self.device, self.conj, self.neg = array, device, conj, neg

    def is_conj(self):
        return self.conj

    def is_neg(self):
        return self.neg

    @property
    def __cuda_array_interface__(self):
        if self.device == "cpu":
            raise AttributeError
        return described(self.array)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__() if self.device == "cpu" else (2, self.device)

    def __dlpack__(self, **options):
        assert self.device == "cpu", "PyTorch's current stream is known without"
        return self.array.__dlpack__(**options)


class Subclass(Tensor):
    """As those of packages on PyTorch: its module is another one."""


class Float8(Tensor):
    """Of a type that the CUDA Array Interface does not know."""

    @property
    def __cuda_array_interface__(self):
        raise KeyError("float8")

    def data_ptr(self):
        return 4096

    @property
    def shape(self):
        return self.array.shape

    def stride(self):
        return tuple(stride // self.array.itemsize for stride in self.array.strides)

    def element_size(self):
        return self.array.itemsize


# ---- CuPy

class Cupy:
    """The module. It has a current GPU."""

    def __init__(self):
        self.streams, self.device, self.ndarray = Streams(), 0, Ndarray
        null = self._external(0)
        self.cuda = types.SimpleNamespace(
            get_current_stream=lambda: Stream(self.streams.numbers.get(self.device, 0)),
            ExternalStream=self._external, Stream=types.SimpleNamespace(null=null))
        sys.modules["cupy"] = self

    def _external(self, number):
        return Entered(lambda: self.streams.use(self.device, number))

    @contextlib.contextmanager
    def _use(self, device):
        before, self.device = self.device, device
        yield
        self.device = before

    def array(self, array, device):
        return Ndarray(self, array, device)

    def empty(self, shape, dtype):
        made = self.array(numpy.empty(shape, dtype), self.device)
        made.made_on = self.cuda.get_current_stream().ptr
        return made


class Entered:
    """A context that can be entered many times."""

    def __init__(self, make):
        self._make, self._open = make, []

    def __enter__(self):
        self._open.append(self._make())
        self._open[-1].__enter__()

    def __exit__(self, *error):
        self._open.pop().__exit__(*error)


class Ndarray:
    def __init__(self, cupy, array, device):
        self.cupy, self.array, self.number = cupy, array, device
        self.shape, self.dtype = array.shape, array.dtype

    @property
    def device(self):
        return Entered(lambda: self.cupy._use(self.number))

    @property
    def __cuda_array_interface__(self):
        return {**described(self.array), "version": 3,
                "stream": self.cupy.cuda.get_current_stream().ptr or 1}
