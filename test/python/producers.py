"""What arrays say of their streams, owners and bits, and what the package makes of it.

usage: python producers.py NAME_OF_A_CHECK"""
import ctypes
import gc
import importlib
import sys
import weakref

import mpi4py.MPI  # mpi() imports it, which would take as long as the simulated GPU does
import numpy
import ucx_cuda_nc
from ucx_cuda_nc import _arrays, _library, _move, _mpi

import frameworks
import memory
from refusals import refused

VALUES = numpy.arange(1000, dtype="i4")


# ---- streams that arrays do not name, on the simulated GPU, which takes its time

class Silent(memory.Interface):
    """Version 2 of the CUDA Array Interface: it has no word on streams."""
    readonly = False

    @property
    def __cuda_array_interface__(self):
        described = super().__cuda_array_interface__
        del described["stream"]
        return {**described, "version": 2, "data": (self.address, self.readonly)}


class Jax(Silent, memory.Dlpack):
    """As JAX's arrays: read-only, and DLPack knows the stream on which they are made."""
    readonly = True

    def __dlpack__(self, *, stream=None, max_version=None):
        # The simulated GPU has no events.
        assert memory.product().cuda_nc_sim_stream_synchronize(self.stream) == 0
        self.asked_for = stream
        return super().__dlpack__(stream=stream, max_version=max_version)


class Pinned(Silent, memory.Dlpack):
    """Host memory for DLPack, although it has the CUDA Array Interface."""

    def __dlpack_device__(self):
        return 3, 0


def new_stream():
    return memory.product().cuda_nc_sim_stream_create(0)


def made(kind, stream):
    """VALUES, made on the stream, which is not through with it."""
    source, packed = memory.Interface(VALUES), memory.Interface(VALUES)
    source.write(VALUES)
    packed.write(numpy.zeros_like(VALUES))
    ucx_cuda_nc.pack(source, out=packed, stream=0 if stream is None else stream)
    return kind(VALUES, packed.base, stream=stream)


def without_a_stream():
    array = made(Silent, None)
    ucx_cuda_nc.mpi(array[::2])
    assert (array.read() == VALUES).all()
    assert _arrays.view_of(array).stream == _arrays.LEGACY_STREAM
    pinned = made(Pinned, None)
    assert _arrays.view_of(pinned).on_gpu
    assert _arrays.view_of(pinned).stream == _arrays.LEGACY_STREAM
    # In version 3 None means that nothing is to be waited for.
    assert _arrays.view_of(memory.Interface(VALUES)).stream is None


def jax():
    array = made(Jax, new_stream())
    strided = array[::2]
    ucx_cuda_nc.mpi(strided)
    assert strided.asked_for == _arrays.LEGACY_STREAM
    assert (array.read() == VALUES).all()
    view = _arrays.view_of(array[::2])
    assert view.readonly and view.address == array.address and view.strides == (8, )
    assert "read-only" in refused(ValueError, lambda: ucx_cuda_nc.copy(VALUES, array))
    # The stream of a pack waits for the array too.
    for chosen in (new_stream(), None):
        array, out = made(Jax, new_stream()), memory.Interface(VALUES[::2].copy(), stream=chosen)
        ucx_cuda_nc.pack(array[::2], out=out)
        assert memory.product().cuda_nc_sim_stream_synchronize(chosen) == 0
        assert (out.read() == VALUES[::2]).all()
    stream, asked = new_stream(), made(Jax, new_stream())
    ucx_cuda_nc.copy(asked, memory.Interface(VALUES), stream=stream)
    assert asked.asked_for == stream


def named_streams():
    """The stream of a pack waits for those that the arrays name."""
    for chosen in (new_stream(), 0):
        array = made(memory.Interface, new_stream())
        out = memory.Interface(VALUES[::2].copy())
        ucx_cuda_nc.pack(array[::2], out=out, stream=chosen)
        assert memory.product().cuda_nc_sim_stream_synchronize(chosen or None) == 0
        assert (out.read() == VALUES[::2]).all()


def lent_memory():
    """What DLPack lends is given back when the stream is through with it."""
    array, out = memory.Dlpack(VALUES), memory.Interface(VALUES[::2].copy())
    array.write(VALUES)
    ucx_cuda_nc.pack(array[::2], out=out, stream=new_stream())
    assert (out.read() == VALUES[::2]).all()


def layouts_in_use():
    """Other threads drive the layout out of those that are kept."""
    stream_of = _move._stream

    def between(*arguments):
        _library.layout_of.cache_clear()
        gc.collect()
        return stream_of(*arguments)
    _move._stream = between
    assert (ucx_cuda_nc.pack(VALUES[::2]) == VALUES[::2]).all()
    _move._stream = stream_of


# ---- owners and bits

def scalars():
    for scalar in (numpy.float64(1 / 3), numpy.int16(-7), numpy.complex128(1j),
                   numpy.bytes_(b"abc"), numpy.array([(1, 2.5)], "i4,f8")[0]):
        view = _arrays.view_of(scalar)
        buffer = ucx_cuda_nc.mpi(scalar)[0]
        # What is freed is used again by these.
        others = [numpy.full((), 255, "u1").astype(f"V{size}")[()] for size in range(1, 17)
                  for _ in range(64)]
        gc.collect()
        for address in view.address, buffer.__cuda_array_interface__["data"][0]:
            assert ctypes.string_at(address, view.nbytes) == scalar.tobytes(), repr(scalar)
        assert view.readonly and buffer.__cuda_array_interface__["data"][1]
        assert "read-only" in refused(ValueError, lambda: ucx_cuda_nc.copy(scalar, scalar))
        del others
    assert ucx_cuda_nc.pack(numpy.float64(2.5)) == 2.5


class Temporary:
    """Its memory lives as long as the description."""

    @property
    def __array_interface__(self):
        array = numpy.arange(4.0)
        self.array = weakref.ref(array)
        return {**array.__array_interface__, "kept": array}


def descriptions():
    array = Temporary()
    buffer = ucx_cuda_nc.mpi(array)
    gc.collect()
    assert array.array() is not None
    del buffer
    gc.collect()
    assert array.array() is None


def lazy_bits():
    frameworks.Torch()
    whole = numpy.zeros(4, "c16")
    for device in ("cpu", 0):
        plain = frameworks.Tensor(whole, device)
        _arrays.view_of(plain)
        for bit, remedy in (("conj", ".resolve_conj()"), ("neg", ".resolve_neg()")):
            lazy = frameworks.Subclass(whole, device, **{bit: True})
            for call in (lambda: ucx_cuda_nc.mpi(lazy), lambda: ucx_cuda_nc.pack(lazy),
                         lambda: ucx_cuda_nc.unpack(whole, lazy),
                         lambda: ucx_cuda_nc.copy(plain, lazy)):
                assert remedy in refused(TypeError, call)


def unknown_types():
    """PyTorch's 8-bit floats have no name in the CUDA Array Interface."""
    torch = frameworks.Torch()
    with torch.streams.use(1, 71):
        view = _arrays.view_of(frameworks.Float8(numpy.zeros((4, 6), "u1")[:, ::2], 1))
    assert view.shape == (4, 3) and view.strides == (6, 2) and view.itemsize == 1
    assert view.kind == "V" and view.on_gpu and view.stream == 71 and view.address == 4096


# ---- datatypes

class Datatype:
    freed = False

    def Free(self):
        self.freed = True


def datatypes():
    """Those that someone has are kept, however this Python counts references."""
    count = sys.getrefcount
    for more in (0, -1, 2):
        sys.getrefcount = lambda value, more=more: count(value) + more
        module = importlib.reload(_mpi)
        used = [module._types.get(number, Datatype) for number in range(0, 100, 2)]
        for number in range(2 * module._KEPT):
            module._types.get(number, Datatype)
        assert not any(datatype.freed for datatype in used)
        assert len(module._types._kept) == module._KEPT
        assert all(module._types._kept[2 * at] is datatype for at, datatype in enumerate(used))
        unused = weakref.ref(module._types._kept[2 * module._KEPT - 1])
        del used
        for number in range(module._KEPT):
            module._types.get(-1 - number, Datatype)
        assert len(module._types._kept) == module._KEPT and unused() is None
    sys.getrefcount = count


# ---- streams of PyTorch and CuPy

STRIDED = numpy.zeros((8, 6))[:, ::2]
DENSE = numpy.zeros((8, 3))


def new_tensors():
    """They are of the stream that writes them."""
    torch, cupy, record = frameworks.Torch(), frameworks.Cupy(), frameworks.record()

    def check(tensor, stream, number):
        record.awaited.clear()
        out = ucx_cuda_nc.pack(tensor, stream=stream)
        assert type(out) is type(tensor), type(out)
        assert (record.streams.pop() or 0) == number and out.made_on == number
        current = 70 + device if isinstance(tensor, frameworks.Tensor) else 80 + device
        assert record.awaited == ([] if number == current else [(number, current)]), record.awaited
        return out

    for device in (0, 1):
        with torch.streams.use(device, 70 + device), cupy.streams.use(device, 80 + device):
            for kind in (frameworks.Tensor, frameworks.Subclass):
                tensor = kind(STRIDED, device)
                assert check(tensor, None, 70 + device).device == device
                for stream in (0x5000, 2, frameworks.Stream(0x5000)):
                    check(tensor, stream, getattr(stream, "ptr", stream))
            array = cupy.array(STRIDED, device)
            assert check(array, None, 80 + device).number == device
            for stream in (0x5000, 2, frameworks.Stream(0x5000)):
                assert check(array, stream, getattr(stream, "ptr", stream)).number == device
            # The default stream has two names.
            for tensor in (frameworks.Tensor(STRIDED, device), array):
                for stream in (0, 1, frameworks.Stream(0)):
                    assert ucx_cuda_nc.pack(tensor, stream=stream).made_on == 0
    record.streams.clear()
    # In host memory there are none.
    ucx_cuda_nc.pack(frameworks.Tensor(STRIDED, "cpu"), stream=0x5000)
    ucx_cuda_nc.pack(frameworks.Tensor(STRIDED, "cpu"))
    assert record.streams == [None, None]


def gpu_and_host():
    """The stream is that of the side on the GPU, whichever it is."""
    torch, cupy, record = frameworks.Torch(), frameworks.Cupy(), frameworks.record()
    host, host_dense = frameworks.Tensor(STRIDED, "cpu"), frameworks.Tensor(DENSE, "cpu")
    for device in (0, 1):
        with torch.streams.use(device, 70 + device), cupy.streams.use(device, 80 + device):
            for make, number in ((frameworks.Subclass, 70 + device), (cupy.array, 80 + device)):
                gpu, gpu_dense = make(STRIDED, device), make(DENSE, device)
                for strided, dense in ((host, gpu_dense), (gpu, host_dense), (gpu, gpu_dense),
                                       (STRIDED, gpu_dense), (gpu, DENSE)):
                    ucx_cuda_nc.pack(strided, out=dense)
                    ucx_cuda_nc.unpack(dense, strided)
                    ucx_cuda_nc.copy(strided, dense)
                    ucx_cuda_nc.copy(dense, strided)
                    assert record.streams == [number] * 4, record.streams
                    record.streams.clear()
                    # Pinned memory that DLPack lends is read and written by the stream too.
                    lent = [(number, id(owner[0])) for number, owners in record.kept
                            for owner in owners]
                    assert lent == [(number, id(side)) for _ in range(4)
                                    for side in (strided, dense)
                                    if isinstance(side, frameworks.Tensor)
                                    and side.device == "cpu"], lent
                    record.kept.clear()
    assert cupy.device == 0


def current_streams():
    """mpi() waits for the current stream of the tensor's GPU."""
    torch, cupy = frameworks.Torch(), frameworks.Cupy()
    waited = []
    _library.synchronize = lambda stream, address: waited.append(stream)
    with torch.streams.use(0, 70), torch.streams.use(1, 71), cupy.streams.use(0, 80), \
            cupy.streams.use(1, 81):
        for device in (0, 1):
            for array in (frameworks.Tensor(DENSE, device), frameworks.Subclass(DENSE, device),
                          cupy.array(DENSE, device)):
                ucx_cuda_nc.mpi(array)
    assert waited == [70, 70, 80, 71, 71, 81], waited
    assert _arrays.view_of(frameworks.Subclass(DENSE, 0)).stream == _arrays.LEGACY_STREAM


CHECKS = {check.__name__: check for check in (
    without_a_stream, jax, named_streams, lent_memory, layouts_in_use, scalars, descriptions,
    lazy_bits, unknown_types, datatypes, new_tensors, gpu_and_host, current_streams)}

if __name__ == "__main__":
    CHECKS[sys.argv[1]]()
    print("RIGHT")
