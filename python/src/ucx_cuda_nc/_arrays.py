"""One description of the arrays of NumPy, CuPy, Numba, PyTorch, JAX ...: by the CUDA Array Interface,
NumPy's, or DLPack. Nothing is copied, and no framework is imported."""
from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import math
import re
import sys
import typing

LEGACY_STREAM = 1  # CUDA's default stream, as the CUDA Array Interface and DLPack number it
_EXACT = 65536  # elements for which overlap is found by trying
_MASKED = "masked arrays cannot be used: their mask would be lost"
_OBJECTS = "elements that are Python objects cannot be sent from memory"
_FRAMEWORKS = (("torch", ("Tensor",)), ("cupy", ("ndarray",)), ("numpy", ("ndarray", "generic")))


@dataclasses.dataclass(frozen=True)
class View:
    address: int  # of the element with all indices 0
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # bytes
    itemsize: int
    kind: str  # of NumPy's type strings; "V": bytes without a meaning here
    readonly: bool
    on_gpu: bool
    stream: int | None  # on which the producer may still be working; None: on none
    owner: typing.Any  # keeps the memory
    by_dlpack: bool = False  # then the producer lets any stream wait for it: exported()

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.itemsize

    @property
    def is_dense(self) -> bool:
        return not self.nbytes or all(
            extent == 1 or stride == dense for extent, stride, dense in
            zip(self.shape, self.strides, dense_strides(self.shape, self.itemsize)))

    def bounds(self) -> tuple[int, int]:
        """Displacements of the lowest byte, and of the one behind the highest."""
        if not self.nbytes:
            return 0, 0
        reach = [(extent - 1) * stride for extent, stride in zip(self.shape, self.strides)]
        return (sum(part for part in reach if part < 0),
                sum(part for part in reach if part > 0) + self.itemsize)


def dense_strides(shape, itemsize) -> tuple[int, ...]:
    strides, stride = [], itemsize
    for extent in reversed(shape):
        strides.append(stride)
        stride *= max(extent, 1)
    return tuple(reversed(strides))


def overlaps(view: View) -> bool:
    """Whether some byte is, or may be, that of two elements: then nothing can be received there."""
    dims = sorted((abs(stride), extent) for extent, stride in zip(view.shape, view.strides)
                  if extent > 1)
    span, apart = view.itemsize, True
    for stride, extent in dims:
        apart &= stride >= span
        span += stride * (extent - 1)
    if apart or not view.nbytes:
        return False
    count = math.prod(view.shape)
    if count > _EXACT or any(stride == 0 for stride, _ in dims):
        return True
    places = [0]
    for stride, extent in dims:
        places = [place + index * stride for place in places for index in range(extent)]
    places.sort()
    return any(after - before < view.itemsize for before, after in zip(places, places[1:]))


def framework(array):
    """(name, module) of PyTorch, CuPy or NumPy, if this is an array of theirs or of a subclass;
    else ("", None). One that is not imported has no arrays."""
    for name, kinds in _FRAMEWORKS:
        module = sys.modules.get(name)
        if module is not None and any(isinstance(array, getattr(module, kind, ()))
                                      for kind in kinds):
            return name, module
    return "", None


def view_of(array) -> View:
    """TypeError: no array, or one of Python objects."""
    name, module = framework(array)
    if name == "torch":
        _refuse_lazy(array)
    if name == "numpy":
        _refuse_what_is_elsewhere(array)
    # CuPy names the current GPU's stream, whichever GPU the array is on.
    with array.device if name == "cupy" else contextlib.nullcontext():
        try:
            described = getattr(array, "__cuda_array_interface__", None)
        except KeyError:  # PyTorch has types that the interface does not know, as 8-bit floats
            if name != "torch":
                raise
            return _of_torch(array)
    if described is not None:
        return _of_gpu(array, described)
    described = getattr(array, "__array_interface__", None)
    if described is not None:
        view = _of_interface(array, described, False)
        if name == "numpy" and isinstance(array, module.generic):
            # What would be received into a scalar of NumPy would go into a copy of it.
            view = dataclasses.replace(view, readonly=True)
        return view
    if hasattr(array, "__dlpack__"):
        return _of_dlpack(array)
    raise TypeError(f"{type(array).__name__} is no array that can be used without a copy: it has "
                    "neither __cuda_array_interface__, __array_interface__ nor __dlpack__; for "
                    "objects with a buffer: numpy.asarray(...)")


def _refuse_lazy(tensor):
    """PyTorch conjugates and negates some tensors by a bit: the bytes in memory are other ones."""
    for is_lazy, what, remedy in ((tensor.is_conj, "conjugate", "resolve_conj"),
                                  (tensor.is_neg, "negative", "resolve_neg")):
        if is_lazy():
            raise TypeError(f"a tensor with PyTorch's {what} bit cannot be used: its memory holds "
                            f"other values than it shows; call .{remedy}() first")


def _refuse_what_is_elsewhere(array):
    """NumPy's masked arrays, and elements with Python objects: the memory holds but a part of them."""
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())
    if isinstance(array, masked):
        raise TypeError(_MASKED)
    if array.dtype.hasobject:
        raise TypeError(_OBJECTS)


def _has_objects(description) -> bool:
    """Of the fields of a structure, as `descr` of an array interface lists them."""
    return any(_has_objects(field[1]) if isinstance(field[1], (list, tuple))
               else "O" in str(field[1]) for field in description)


def _of_torch(tensor) -> View:
    """A tensor on a GPU, by its own functions."""
    size = tensor.element_size()
    return View(tensor.data_ptr(), tuple(tensor.shape),
                tuple(stride * size for stride in tensor.stride()), size, "V", False, True,
                stream_of_torch(tensor), tensor)


def _of_gpu(array, described) -> View:
    """By the CUDA Array Interface. Before version 3 it says nothing of streams, while the producer
    may still be working on one."""
    view = _of_interface(array, described, True)
    if "stream" in described:
        return view
    stream = stream_of_torch(array)
    if stream is None and hasattr(array, "__dlpack__") and _dlpack_device(array) in _GPU:
        # The producer knows its stream, and lets ours wait for it.
        by_dlpack = _of_dlpack(array)
        return dataclasses.replace(by_dlpack, readonly=view.readonly or by_dlpack.readonly)
    return dataclasses.replace(view, stream=LEGACY_STREAM if stream is None else stream)


def _of_interface(array, described, on_gpu) -> View:
    if described.get("mask") is not None:
        raise TypeError(_MASKED)
    match = re.fullmatch(r"([<>|=])([a-zA-Z])(\d+)(\[.*\])?", described["typestr"])
    if match is None or match.group(2) == "t":
        raise TypeError(f"elements of type {described['typestr']!r} are not known here")
    order, kind, size = match.group(1), match.group(2), int(match.group(3))
    if kind == "O" or (kind == "V" and _has_objects(described.get("descr") or ())):
        raise TypeError(_OBJECTS)
    itemsize = size * 4 if kind == "U" else size
    if order == ">" or kind not in "biufc":
        kind = "V"
    shape = tuple(int(extent) for extent in described["shape"])
    strides = described.get("strides")
    strides = (dense_strides(shape, itemsize) if strides is None
               else tuple(int(stride) for stride in strides))
    data = described.get("data")
    if not isinstance(data, tuple):
        raise TypeError("an array that gives its memory by the buffer interface alone cannot be "
                        "used: numpy.asarray(...)")
    stream = described.get("stream") if on_gpu else None
    if stream == 0:
        raise ValueError("the array's stream is 0, which the CUDA Array Interface forbids")
    return View(int(data[0] or 0), shape, strides, itemsize, kind, bool(data[1]), on_gpu,
                None if stream is None else int(stream),
                # The memory of NumPy's scalars is kept by the description alone.
                (array, described))


def stream_of_torch(array):
    """PyTorch does not say on which stream it may still be working: its current one. None: the array
    is not PyTorch's."""
    name, torch = framework(array)
    if name != "torch":
        return None
    return torch.cuda.current_stream(array.device).cuda_stream or LEGACY_STREAM


# ---- DLPack

class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


_HOST, _GPU = (1, 3), (2, 13)  # kDLCPU, kDLCUDAHost; kDLCUDA, kDLCUDAManaged
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_READ_ONLY = 1


def _dlpack_device(array) -> int:
    return int(array.__dlpack_device__()[0])


def exported(array, stream):
    """A capsule of DLPack. The producer makes this stream wait for its own work; None: for memory
    of the host."""
    options = {} if stream is None else {"stream": stream}
    try:
        return array.__dlpack__(max_version=(1, 0), **options)
    except TypeError:
        return array.__dlpack__(**options)


def _of_dlpack(array) -> View:
    device_type = _dlpack_device(array)
    if device_type not in (*_HOST, *_GPU):
        raise TypeError(f"memory of DLPack's device type {device_type} is not served: host memory "
                        "and GPUs from NVIDIA are")
    on_gpu = device_type in _GPU
    stream = LEGACY_STREAM if on_gpu else None
    capsule = exported(array, stream)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)
    readonly = False
    if is_valid(capsule, b"dltensor_versioned"):
        managed = ctypes.cast(get(capsule, b"dltensor_versioned"), ctypes.POINTER(_Versioned))[0]
        if managed.major != 1:
            raise TypeError(f"DLPack {managed.major} is not known here")
        tensor, readonly = managed.tensor, bool(managed.flags & _READ_ONLY)
    else:
        tensor = ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(_Tensor))[0]
    bits = tensor.bits * tensor.lanes
    if bits % 8:
        raise TypeError(f"elements of {bits} bits are not whole bytes")
    kind = _KINDS.get(tensor.code, "V") if tensor.lanes == 1 else "V"
    shape, itemsize = tuple(tensor.shape[:tensor.ndim]), bits // 8
    strides = (tuple(stride * itemsize for stride in tensor.strides[:tensor.ndim])
               if tensor.strides else dense_strides(shape, itemsize))
    # An unused capsule gives the tensor back when it goes.
    return View((tensor.data or 0) + tensor.byte_offset, shape, strides, itemsize, kind, readonly,
                on_gpu, stream, (array, capsule), True)
