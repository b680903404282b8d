"""Strided arrays for mpi4py: the memory itself, and a derived datatype that says where its elements
lie."""
from __future__ import annotations

import atexit
import collections
import sys
import threading

from . import _arrays, _library

_KEPT = 256  # datatypes


class _Memory:
    """Bytes of host or GPU memory as mpi4py takes them: it looks at the address alone. A request of
    mpi4py keeps this object, and this object the array."""

    def __init__(self, address, nbytes, readonly, owner):
        self.__cuda_array_interface__ = {"shape": (nbytes,), "typestr": "|u1", "version": 3,
                                         "data": (address, readonly), "strides": None,
                                         "stream": None}
        self._owner = owner


def mpi(array):
    """[buffer, count, datatype] of an array of NumPy, CuPy, PyTorch ..., for mpi4py's calls that take
    buffers: comm.Send(ucx_cuda_nc.mpi(x[:, ::2]), dest=1). Nothing is copied.

    Elements are sent in the order of the array's indices, the last one fastest. Both sides may have
    any shape and strides with as many elements.

    The call waits for the array's stream, so that MPI sees what was computed. What MPI receives is
    there when its call or request has ended, for every stream. Between this call and the end of the
    message let no stream write to the array.

    Where some bytes belong to several elements (strides of 0, overlapping windows), and in read-only
    arrays, nothing can be received: mpi4py refuses it, as it refuses all read-only buffers.

    TypeError: no array, or one of Python objects."""
    from mpi4py import MPI
    view = _arrays.view_of(array)
    if view.stream is not None and view.nbytes:
        _library.synchronize(view.stream, view.address)
    basic, shape, strides = _basic(MPI, view)
    dims = _fold(shape, strides, view.itemsize)
    if not view.nbytes:
        return [_Memory(0, 0, False, view.owner), 0, MPI.BYTE]
    readonly = view.readonly or _arrays.overlaps(view)
    lower, upper = view.bounds()
    memory = _Memory(view.address + lower, upper - lower, readonly, view.owner)
    if view.is_dense:
        count = view.nbytes // view.itemsize
        return ([memory, count, basic] if basic is not None
                else [memory, view.nbytes, MPI.BYTE])
    key = (None if basic is None else basic.py2f(), view.itemsize, dims, lower)
    return [memory, 1, _types.get(key, lambda: _make(MPI, basic, view.itemsize, dims, lower))]


def _basic(MPI, view):
    """MPI's type of an element, or None: bytes. Elements at odd places are bytes too, because Open
    MPI packs some types wrongly there."""
    aligned = all(stride % view.itemsize == 0 for stride, extent in
                  zip(view.strides, view.shape) if extent > 1) if view.itemsize else True
    if not aligned:
        return None, view.shape, view.strides
    basic = {
        ("b", 1): MPI.C_BOOL,
        ("i", 1): MPI.INT8_T, ("i", 2): MPI.INT16_T, ("i", 4): MPI.INT32_T, ("i", 8): MPI.INT64_T,
        ("u", 1): MPI.UINT8_T, ("u", 2): MPI.UINT16_T, ("u", 4): MPI.UINT32_T,
        ("u", 8): MPI.UINT64_T, ("f", 4): MPI.FLOAT, ("f", 8): MPI.DOUBLE,
        ("c", 8): MPI.C_FLOAT_COMPLEX, ("c", 16): MPI.C_DOUBLE_COMPLEX,
    }.get((view.kind, view.itemsize))
    return basic, view.shape, view.strides


def _fold(shape, strides, itemsize):
    """((extent, stride), ...) from the innermost dimension to the outermost; neighbours that are one
    dimension are joined."""
    dims = []
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent == 1:
            continue
        if dims and stride == dims[-1][0] * dims[-1][1]:
            dims[-1] = (dims[-1][0] * extent, dims[-1][1])
        else:
            dims.append((extent, stride))
    return tuple(dims)


def _make(MPI, basic, itemsize, dims, lower):
    """A committed datatype; displacement 0 is the lowest byte."""
    made = []

    def keep(datatype):
        made.append(datatype)
        return datatype

    element = basic if basic is not None else keep(MPI.BYTE.Create_contiguous(itemsize))
    for extent, stride in dims:
        if stride == -1:
            # Open MPI takes a stride of -1 byte for "not given".
            element = keep(element.Create_hindexed_block(1, [-place for place in range(extent)]))
        else:
            element = keep(element.Create_hvector(extent, 1, stride))
    if lower:
        element = keep(element.Create_hindexed_block(1, [-lower]))
    made.pop()
    for datatype in made:
        datatype.Free()
    return element.Commit()


def _references(kept, key):
    """sys.getrefcount of a value, as it is counted here."""
    value = kept[key]
    return sys.getrefcount(value)


# The count of a value that the table alone has. Releases of Python count differently.
_UNUSED = _references(collections.OrderedDict(probe=object()), "probe")


class _Types:
    """Committed datatypes by what they describe. One that is no longer kept is freed, unless someone
    still has it."""

    def __init__(self):
        self._lock = threading.Lock()
        self._kept = collections.OrderedDict()
        atexit.register(self.free)

    def get(self, key, make):
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None:
                self._drop()
                found = make()
            self._kept[key] = found
            return found

    def _drop(self):
        for key in list(self._kept):
            if len(self._kept) < _KEPT:
                return
            if _references(self._kept, key) <= _UNUSED:
                self._kept.pop(key).Free()

    def free(self):
        with self._lock:
            MPI = sys.modules.get("mpi4py.MPI")
            if MPI is not None and MPI.Is_initialized() and not MPI.Is_finalized():
                for datatype in self._kept.values():
                    datatype.Free()
            self._kept.clear()


_types = _Types()
