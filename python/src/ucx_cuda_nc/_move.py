"""Pack, unpack and copy of strided tensors, on a stream."""
from __future__ import annotations

import contextlib

from . import _arrays, _library

_DEFAULT = (0, _arrays.LEGACY_STREAM)


def pack(tensor, out=None, stream=None):
    """Gathers a strided tensor into contiguous memory, and returns it: `out`, or a new tensor of the
    same kind and shape. In GPU memory this is one kernel on the stream, and the call does not wait.

    `out`: any contiguous array of as many bytes. `stream`: a stream of CuPy or PyTorch, any object
    with __cuda_stream__, or CUDA's number of one; without it PyTorch's or CuPy's current stream on
    the array's GPU, else the one that an array names, else the default stream. A new tensor belongs
    to that stream. In host memory the CPU does it at once.

    ValueError: `out` does not fit. TypeError: no array."""
    source = _arrays.view_of(tensor)
    if out is None:
        out = _like(tensor, _number(stream) if source.on_gpu else None)
    target = _contiguous(out, source, "out")
    if source.nbytes:
        _run("cuda_nc_pack", stream, ((tensor, source), (out, target)),
             _layout(source), source.address, _writable(target, "out").address)
    return out


def unpack(packed, tensor, stream=None):
    """Scatters contiguous memory to the places of a strided tensor, and returns that. Touches nothing
    between its elements. Streams and errors: see pack."""
    target = _arrays.view_of(tensor)
    source = _contiguous(packed, target, "packed")
    if target.nbytes:
        _run("cuda_nc_unpack", stream, ((tensor, target), (packed, source)),
             _layout(_writable(target, "tensor")), source.address, target.address)
    return tensor


def copy(src, dst, stream=None):
    """Copies a strided tensor into another one with as many bytes, element after element in the
    order of indices, and returns that. Streams and errors: see pack."""
    source, target = _arrays.view_of(src), _arrays.view_of(dst)
    if source.nbytes != target.nbytes:
        raise ValueError(f"src has {source.nbytes} bytes, dst {target.nbytes}")
    if target.nbytes:
        _run("cuda_nc_copy", stream, ((dst, target), (src, source)),
             _layout(source), source.address, _layout(_writable(target, "dst")), target.address)
    return dst


def _layout(view):
    return _library.layout_of(view.shape, view.strides, view.itemsize)


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


def _like(tensor, stream):
    """A new contiguous tensor. Frameworks take its memory from what the same stream has freed,
    where earlier work may still use it: only work on `stream`, None: the current one, is later."""
    name, module = _arrays.framework(tensor)
    if name == "torch":
        with _torch_stream(module, stream, tensor.device):
            return module.empty_like(tensor, memory_format=module.contiguous_format)
    if name == "cupy":
        with tensor.device, _cupy_stream(module, stream):
            return module.empty(tensor.shape, tensor.dtype)
    if name == "numpy":
        return module.empty(tensor.shape, tensor.dtype)
    raise TypeError(f"a {type(tensor).__name__} cannot be made here: give out=")


def _torch_stream(torch, stream, device):
    if stream is None:
        return contextlib.nullcontext()
    return torch.cuda.stream(torch.cuda.default_stream(device) if stream in _DEFAULT else
                             torch.cuda.ExternalStream(stream, device=device))


def _cupy_stream(cupy, stream):
    if stream is None:
        return contextlib.nullcontext()
    return cupy.cuda.Stream.null if stream in _DEFAULT else cupy.cuda.ExternalStream(stream)


def _number(stream):
    """CUDA's number of a stream that the caller gives; None: none is given."""
    if stream is None:
        return None
    if hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    else:
        for name in ("cuda_stream", "ptr", "handle"):
            if not isinstance(stream, int):
                stream = getattr(stream, name, stream)
    if not isinstance(stream, int):
        raise TypeError(f"{type(stream).__name__} is no CUDA stream")
    return stream


def _run(name, stream, sides, *arguments):
    """Calls the function of the C API on the stream, behind what the arrays' producers still do.
    Each side is (array, view); the first one in GPU memory tells the stream where none is given."""
    on_gpu = [(array, view) for array, view in sides if view.on_gpu]
    on = _stream(stream, on_gpu)
    _library.check(getattr(_library.loaded(), name)(*arguments, on))
    # Who made an array may use its memory for something else once DLPack's capsule has gone; pinned
    # host memory too.
    lent = [view.owner for _, view in sides if view.by_dlpack]
    if lent and on_gpu:
        _library.keep_until_done(lent, on, on_gpu[0][1].address)


def _stream(stream, sides):
    """CUDA's number of the stream, which waits for those that the arrays name; None: the default
    stream."""
    if not sides:
        return None
    stream = _number(_current(sides) if stream is None else stream)
    if _library.simulated() and stream in (1, 2):
        stream = 0
    awaited = {}
    for array, view in sides:
        if view.by_dlpack and stream not in _DEFAULT:
            _arrays.exported(array, stream)  # only to let the stream wait for the producer
        elif not view.by_dlpack and view.stream is not None and not _are_same(view.stream, stream):
            awaited[view.stream] = view.address
    for other, address in awaited.items():
        _library.wait_for(stream, other, address)
    return stream or None


def _are_same(one, other):
    return one == other or (one in _DEFAULT and other in _DEFAULT)


def _current(sides):
    array = sides[0][0]
    name, module = _arrays.framework(array)
    if name == "torch":
        return module.cuda.current_stream(array.device).cuda_stream
    if name == "cupy":
        with array.device:
            return module.cuda.get_current_stream().ptr
    return next((view.stream for _, view in sides
                 if view.stream is not None and not view.by_dlpack), 0)
