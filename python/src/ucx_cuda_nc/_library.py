"""The C API by ctypes: no compiler, any Python."""
from __future__ import annotations

import ctypes
import functools
import os

from . import _environment

_INT64S = ctypes.POINTER(ctypes.c_int64)
_FUNCTIONS = {
    "cuda_nc_last_error": (ctypes.c_char_p, ()),
    "cuda_nc_layout_create_strided": (ctypes.c_int8, (
        ctypes.c_int, _INT64S, _INT64S, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p))),
    "cuda_nc_layout_destroy": (None, (ctypes.c_void_p,)),
    "cuda_nc_pack": (ctypes.c_int8, (ctypes.c_void_p,) * 4),
    "cuda_nc_unpack": (ctypes.c_int8, (ctypes.c_void_p,) * 4),
    "cuda_nc_copy": (ctypes.c_int8, (ctypes.c_void_p,) * 5),
    "cuda_nc_sim_stream_synchronize": (ctypes.c_int8, (ctypes.c_void_p,)),
}
_OUT_OF_MEMORY, _INVALID, _UNSUPPORTED, _EXCEEDS = -4, -5, -22, -21


@functools.lru_cache(maxsize=None)
def loaded() -> ctypes.CDLL:
    _environment.check_platform()
    loaded = ctypes.CDLL(str(_environment.get_library_dir() / "libcuda_nc.so.0"))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def check(status: int) -> None:
    if status >= 0:
        return
    sentence = loaded().cuda_nc_last_error().decode(errors="replace") or f"UCX's status {status}"
    if status == _OUT_OF_MEMORY:
        raise MemoryError(sentence)
    if status in (_INVALID, _EXCEEDS):
        raise ValueError(sentence)
    raise RuntimeError(sentence)


def simulated() -> bool:
    return os.environ.get("UCX_CUDA_NC_GPU") == "sim"


class Layout:
    """A layout of the C API, destroyed with this object."""

    def __init__(self, shape, strides, itemsize):
        numbers = ctypes.c_int64 * len(shape)
        handle = ctypes.c_void_p()
        check(loaded().cuda_nc_layout_create_strided(
            len(shape), numbers(*shape), numbers(*strides), itemsize, ctypes.byref(handle)))
        self.handle = handle

    def __del__(self):
        handle = getattr(self, "handle", None)
        if handle is not None:
            loaded().cuda_nc_layout_destroy(handle)


@functools.lru_cache(maxsize=256)
def layout_of(shape, strides, itemsize) -> Layout:
    return Layout(shape, strides, itemsize)


# ---- streams

@functools.lru_cache(maxsize=None)
def _driver() -> ctypes.CDLL:
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuStreamSynchronize.argtypes = (ctypes.c_void_p,)
    driver.cuPointerGetAttribute.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64)
    driver.cuCtxPushCurrent_v2.argtypes = (ctypes.c_void_p,)
    driver.cuCtxPopCurrent_v2.argtypes = (ctypes.POINTER(ctypes.c_void_p),)
    return driver


def _ask(result: int, what: str) -> None:
    if result != 0:
        raise RuntimeError(f"{what}: the CUDA driver says error {result}")


def synchronize(stream: int, address: int) -> None:
    """Waits until the stream has done its work. `address` is GPU memory; it tells the GPU whose
    default stream 1 and 2 mean."""
    if simulated():
        # It has no stream of each thread: all default streams are one.
        check(loaded().cuda_nc_sim_stream_synchronize(None if stream in (1, 2) else stream))
        return
    driver, context = _driver(), ctypes.c_void_p()
    _ask(driver.cuPointerGetAttribute(ctypes.addressof(context), 1, address),
         f"memory at {address:#x}")
    if context.value:
        _ask(driver.cuCtxPushCurrent_v2(context), "the memory's context")
    try:
        _ask(driver.cuStreamSynchronize(stream), f"waiting for stream {stream:#x}")
    finally:
        if context.value:
            driver.cuCtxPopCurrent_v2(ctypes.byref(context))
