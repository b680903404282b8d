"""The C API by ctypes: no compiler, any Python."""
from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import os
import threading

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
    """A layout of the C API, destroyed with this object. As an argument of a call it lives until the
    call has returned."""

    def __init__(self, shape, strides, itemsize):
        numbers = ctypes.c_int64 * len(shape)
        handle = ctypes.c_void_p()
        check(loaded().cuda_nc_layout_create_strided(
            len(shape), numbers(*shape), numbers(*strides), itemsize, ctypes.byref(handle)))
        self._as_parameter_ = handle

    def __del__(self):
        handle = getattr(self, "_as_parameter_", None)
        if handle is not None:
            loaded().cuda_nc_layout_destroy(handle)


@functools.lru_cache(maxsize=256)
def layout_of(shape, strides, itemsize) -> Layout:
    return Layout(shape, strides, itemsize)


# ---- streams

_CONTEXT, _ORDINAL = 1, 9  # CU_POINTER_ATTRIBUTE_
_WITHOUT_TIME = 2  # CU_EVENT_DISABLE_TIMING
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_
_POINTER = ctypes.c_void_p
_POINTER_P, _INT_P = ctypes.POINTER(_POINTER), ctypes.POINTER(ctypes.c_int)
_OF_DRIVER = {
    "cuStreamSynchronize": (_POINTER,),
    "cuStreamGetCaptureInfo": (_POINTER, _INT_P, ctypes.POINTER(ctypes.c_uint64)),
    "cuThreadExchangeStreamCaptureMode": (_INT_P,),
    "cuStreamWaitEvent": (_POINTER, _POINTER, ctypes.c_uint),
    "cuEventCreate": (_POINTER_P, ctypes.c_uint),
    "cuEventRecord": (_POINTER, _POINTER),
    "cuEventQuery": (_POINTER,),
    "cuEventSynchronize": (_POINTER,),
    "cuEventDestroy_v2": (_POINTER,),
    "cuPointerGetAttribute": (_POINTER, ctypes.c_int, ctypes.c_uint64),
    "cuCtxPushCurrent_v2": (_POINTER,),
    "cuCtxPopCurrent_v2": (_POINTER_P,),
    "cuDeviceGet": (_INT_P, ctypes.c_int),
    "cuDevicePrimaryCtxRetain": (_POINTER_P, ctypes.c_int),
    "cuDevicePrimaryCtxRelease_v2": (ctypes.c_int,),
}


@functools.lru_cache(maxsize=None)
def _driver() -> ctypes.CDLL:
    driver = ctypes.CDLL("libcuda.so.1")
    for name, arguments in _OF_DRIVER.items():
        getattr(driver, name).argtypes = arguments
    return driver


def _ask(result: int, what: str) -> None:
    if result != 0:
        raise RuntimeError(f"{what}: the CUDA driver says error {result}")


@contextlib.contextmanager
def _on_gpu_of(address: int):
    """The driver, with the context of this GPU memory current: the streams 1 and 2 are that GPU's.
    Memory of pools and of cuMemCreate has no context; there it is its GPU's primary one. While a
    stream is being captured, other threads too may not use events unless they say that they mean
    it."""
    driver, context, retained = _driver(), ctypes.c_void_p(), None
    mode = ctypes.c_int(_RELAXED)
    what = f"memory at {address:#x}"
    _ask(driver.cuPointerGetAttribute(ctypes.addressof(context), _CONTEXT, address), what)
    if not context.value:
        ordinal, device = ctypes.c_int(), ctypes.c_int()
        _ask(driver.cuPointerGetAttribute(ctypes.addressof(ordinal), _ORDINAL, address), what)
        _ask(driver.cuDeviceGet(ctypes.byref(device), ordinal), what)
        _ask(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), what)
        retained = device
    try:
        _ask(driver.cuCtxPushCurrent_v2(context), "the memory's context")
        driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        try:
            yield driver
        finally:
            driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
            driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    finally:
        if retained is not None:
            driver.cuDevicePrimaryCtxRelease_v2(retained)


def _synchronize_simulated(stream) -> None:
    # It has no stream of each thread: all default streams are one.
    check(loaded().cuda_nc_sim_stream_synchronize(None if stream in (0, 1, 2) else stream))


def synchronize(stream: int, address: int) -> None:
    """Waits until the stream has done its work. `address` is GPU memory; it tells the GPU whose
    default stream 1 and 2 mean."""
    if simulated():
        _synchronize_simulated(stream)
        return
    with _on_gpu_of(address) as driver:
        _ask(driver.cuStreamSynchronize(stream), f"waiting for stream {stream:#x}")


def _event_on(driver, stream):
    """A new event behind the work of the stream, which another one can wait for."""
    event = ctypes.c_void_p()
    _ask(driver.cuEventCreate(ctypes.byref(event), _WITHOUT_TIME), "an event")
    _ask(driver.cuEventRecord(event, stream), "an event's record")
    return event


def _capture_of(driver, stream):
    """The number of the capture that this stream is part of; None: it is not being captured."""
    state, number = ctypes.c_int(), ctypes.c_uint64()
    failed = driver.cuStreamGetCaptureInfo(stream, ctypes.byref(state), ctypes.byref(number))
    return None if failed or not state.value else number.value


def wait_for(stream: int, other: int, address: int) -> None:
    """Later work of `stream` begins after what `other` has to do now; `address` as above. Where a
    graph captures one of them, and not the other one too, neither can wait: nothing is done."""
    if simulated():
        _synchronize_simulated(other)
        return
    with _on_gpu_of(address) as driver:
        if _capture_of(driver, stream) != _capture_of(driver, other):
            return
        event = _event_on(driver, other)
        try:
            _ask(driver.cuStreamWaitEvent(stream, event, 0), "waiting for an array's stream")
        finally:
            driver.cuEventDestroy_v2(event)


class _Kept:
    """Owners of memory that work on a stream still uses."""
    most = 256

    def __init__(self):
        self._lock = threading.Lock()
        self._waiting = collections.deque()  # (event, owners), the oldest first
        self._captured = []  # a graph may use them as long as the process lives

    def keep(self, owners, stream, address: int) -> None:
        if simulated():  # it has no events
            _synchronize_simulated(stream or 0)
            return
        with _on_gpu_of(address) as driver:
            if _capture_of(driver, stream) is not None:
                self._captured.append(owners)
                return
            event = _event_on(driver, stream)
            ended = []  # given back without the lock: their deleters may call anything
            with self._lock:
                self._waiting.append((event, owners))
                while self._waiting and (len(self._waiting) > self.most or
                                         driver.cuEventQuery(self._waiting[0][0]) == 0):
                    ended.append(self._waiting.popleft())
            for passed, _ in ended:
                driver.cuEventSynchronize(passed)
                driver.cuEventDestroy_v2(passed)


_kept = _Kept()


def keep_until_done(owners, stream, address: int) -> None:
    """Keeps the owners until the stream has done what it has to do now. `stream`: None is the
    default stream."""
    _kept.keep(owners, stream, address)
