"""Pack, unpack and copy of strided tensors, on a stream."""
from __future__ import annotations

import sys

from . import _arrays, _library


def pack(tensor, out=None, stream=None):
    """Gathers a strided tensor into contiguous memory, and returns it: `out`, or a new tensor of the
    same kind and shape. In GPU memory this is one kernel on the stream, and the call does not wait.

    `out`: any contiguous array of as many bytes. `stream`: a stream of CuPy or PyTorch, any object
    with __cuda_stream__, or CUDA's number of one; without it PyTorch's or CuPy's current stream, else
    the one that the tensor names, else the default stream. In host memory the CPU does it at once.

    ValueError: `out` does not fit. TypeError: no array."""
    source = _arrays.view_of(tensor)
    if out is None:
        out = _like(tensor)
    target = _contiguous(out, source, "out")
    if source.nbytes:
        _library.check(_library.loaded().cuda_nc_pack(
            _layout(source), source.address, _writable(target, "out").address,
            _stream(stream, tensor, source, target)))
    return out


def unpack(packed, tensor, stream=None):
    """Scatters contiguous memory to the places of a strided tensor, and returns that. Touches nothing
    between its elements. Streams and errors: see pack."""
    target = _arrays.view_of(tensor)
    source = _contiguous(packed, target, "packed")
    if target.nbytes:
        _library.check(_library.loaded().cuda_nc_unpack(
            _layout(_writable(target, "tensor")), source.address, target.address,
            _stream(stream, tensor, target, source)))
    return tensor


def copy(src, dst, stream=None):
    """Copies a strided tensor into another one with as many bytes, element after element in the
    order of indices, and returns that. Streams and errors: see pack."""
    source, target = _arrays.view_of(src), _arrays.view_of(dst)
    if source.nbytes != target.nbytes:
        raise ValueError(f"src has {source.nbytes} bytes, dst {target.nbytes}")
    if target.nbytes:
        _library.check(_library.loaded().cuda_nc_copy(
            _layout(source), source.address, _layout(_writable(target, "dst")), target.address,
            _stream(stream, dst if target.on_gpu else src, target, source)))
    return dst


def _layout(view):
    return _library.layout_of(view.shape, view.strides, view.itemsize).handle


def _writable(view, name):
    if view.readonly:
        raise ValueError(f"{name} is read-only")
    return view


def _contiguous(array, strided, name):
    view = _arrays.view_of(array)
    if not view.is_dense:
        raise ValueError(f"{name} must be contiguous: for strided memory on both sides there is "
                         "ucx_cuda_nc.copy")
    if view.nbytes != strided.nbytes:
        raise ValueError(f"{name} has {view.nbytes} bytes, the tensor {strided.nbytes}")
    return view


def _framework(tensor):
    name = type(tensor).__module__.partition(".")[0]
    return name, sys.modules.get(name)


def _like(tensor):
    name, module = _framework(tensor)
    if name == "torch":
        return module.empty_like(tensor, memory_format=module.contiguous_format)
    if name in ("numpy", "cupy"):
        return module.empty(tensor.shape, tensor.dtype)
    raise TypeError(f"a {type(tensor).__name__} cannot be made here: give out=")


def _stream(stream, tensor, *views):
    """CUDA's number of the stream; None: the default stream."""
    if not any(view.on_gpu for view in views):
        return None
    if stream is None:
        stream = _current(tensor, views)
    elif hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    else:
        for name in ("cuda_stream", "ptr", "handle"):
            if not isinstance(stream, int):
                stream = getattr(stream, name, stream)
    if not isinstance(stream, int):
        raise TypeError(f"{type(stream).__name__} is no CUDA stream")
    if _library.simulated() and stream in (1, 2):
        return None
    return stream or None


def _current(tensor, views):
    name, module = _framework(tensor)
    if name == "torch":
        return module.cuda.current_stream(tensor.device).cuda_stream
    if name == "cupy":
        return module.cuda.get_current_stream().ptr
    return next((view.stream for view in views if view.on_gpu and view.stream is not None), 0)
