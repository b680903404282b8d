"""What the package asks of the CUDA driver: by a stand-in that follows the driver's rules.

usage: python driver.py NAME_OF_A_CHECK"""
import ctypes
import gc
import sys
import weakref

from ucx_cuda_nc import _library

from refusals import refused

POOL, PLAIN = 0x10000, 0x20000  # memory without a context, and with that of GPU 0
CONTEXT, PRIMARY = 0xc0, 0xd0  # + the GPU's ordinal
INVALID_CONTEXT, NOT_READY, UNSUPPORTED, ISOLATION = 201, 600, 900, 905


class Driver:
    """The rules: streams 1 and 2 are those of the current context; while any stream is captured,
    events are for threads that are relaxed; a captured event is for its own capture alone."""

    def __init__(self):
        self.waited, self.events, self.current, self.retained = [], {}, [], []
        self.captures = {}  # the number of each stream's capture
        self.done = set()  # streams that are through
        self.mode, self.next = 0, 0x700

    def _may(self):
        return self.mode == 2 or not self.captures

    def _stream(self, stream):
        stream = stream or 1
        if stream > 2:
            return stream
        return (self.current[-1], stream) if self.current else None

    def cuPointerGetAttribute(self, to, attribute, address):
        if attribute == 1:
            ctypes.c_uint64.from_address(to).value = 0 if address == POOL else CONTEXT
        else:
            assert attribute == 9
            ctypes.c_int.from_address(to).value = 3
        return 0

    def cuDeviceGet(self, to, ordinal):
        to._obj.value = ordinal.value + 10
        return 0

    def cuDevicePrimaryCtxRetain(self, to, device):
        self.retained.append(device.value)
        to._obj.value = PRIMARY + device.value - 10
        return 0

    def cuDevicePrimaryCtxRelease_v2(self, device):
        self.retained.remove(device.value)
        return 0

    def cuCtxPushCurrent_v2(self, context):
        self.current.append(context.value)
        return 0

    def cuCtxPopCurrent_v2(self, to):
        to._obj.value = self.current.pop()
        return 0

    def cuThreadExchangeStreamCaptureMode(self, mode):
        self.mode, mode._obj.value = mode._obj.value, self.mode
        return 0

    def cuStreamGetCaptureInfo(self, stream, state, number):
        state._obj.value = stream in self.captures
        number._obj.value = self.captures.get(stream, 0)
        return 0

    def cuStreamSynchronize(self, stream):
        if not self._may():
            return UNSUPPORTED
        stream = self._stream(stream)
        if stream is None:
            return INVALID_CONTEXT
        self.waited.append(stream)
        return 0

    def cuEventCreate(self, to, flags):
        assert flags == 2
        self.next += 1
        to._obj.value = self.next
        self.events[self.next] = None
        return 0 if self._may() else UNSUPPORTED

    def cuEventRecord(self, event, stream):
        self.events[event.value] = self._stream(stream)
        return 0

    def cuStreamWaitEvent(self, stream, event, flags):
        other = self.events[event.value]
        if self.captures.get(stream) != self.captures.get(other):
            return ISOLATION
        self.waited.append((stream, other))
        return 0

    def cuEventQuery(self, event):
        if not self._may():
            return UNSUPPORTED
        assert self.events[event.value] not in self.captures, "captured events cannot be asked"
        return 0 if self.events[event.value] in self.done else NOT_READY

    def cuEventSynchronize(self, event):
        stream = self.events[event.value]
        if stream not in self.done:
            self.waited.append(stream)
        return 0 if self._may() else UNSUPPORTED

    def cuEventDestroy_v2(self, event):
        del self.events[event.value]
        return 0

    def is_as_before(self):
        return not self.current and not self.retained and self.mode == 0


def installed():
    driver = Driver()
    _library._driver = lambda: driver
    return driver


class Owner:
    pass


def kept(stream):
    """A weak reference to what is kept for the stream."""
    owner = Owner()
    _library.keep_until_done([owner], stream, PLAIN)
    return weakref.ref(owner)


# ---- the checks

def contexts():
    """The default stream is that of the memory's GPU, in memory of pools too."""
    driver = installed()
    _library.synchronize(1, PLAIN)
    _library.synchronize(1, POOL)
    _library.synchronize(2, POOL)
    assert driver.waited == [(CONTEXT, 1), (PRIMARY + 3, 1), (PRIMARY + 3, 2)], driver.waited
    driver.cuStreamSynchronize = lambda _: 700
    for address in PLAIN, POOL:
        assert "700" in refused(RuntimeError, lambda: _library.synchronize(1, address))
    assert driver.is_as_before()


def captures():
    """A stream waits for one that the same graph captures, or none."""
    for chosen, other, waits in ((None, None, True), (5, None, False), (None, 5, False),
                                 (5, 5, True), (5, 6, False)):
        driver = installed()
        driver.captures = {stream: number for stream, number in ((0x50, chosen), (0x60, other))
                           if number}
        _library.wait_for(0x50, 0x60, POOL)
        assert driver.waited == ([(0x50, 0x60)] if waits else []), (chosen, other, driver.waited)
        assert not driver.events and driver.is_as_before()


def kept_memory():
    driver = installed()
    slow, quick, default = kept(0x50), kept(0x60), kept(None)
    gc.collect()
    assert slow() and quick() and default()
    # A graph that is captured elsewhere ends nothing.
    driver.captures = {0x80: 5}
    other = kept(0x90)
    gc.collect()
    assert slow() and quick() and default() and other()
    driver.captures = {}
    driver.done = {0x50, 0x60, (CONTEXT, 1)}
    last = kept(0x90)
    gc.collect()
    assert not slow() and not quick() and not default() and other() and last()
    driver.done.add(0x90)
    kept(0x90)
    gc.collect()
    assert not other() and not last() and not driver.events
    assert not driver.waited and driver.is_as_before()


def kept_in_graphs():
    """A graph may run at any time."""
    driver = installed()
    driver.captures = {0x50: 5}
    lent = kept(0x50)
    driver.captures, driver.done = {}, {0x50, 0x60}
    kept(0x60)
    gc.collect()
    assert lent() and not driver.events


def many_kept():
    """When there are too many, the oldest is waited for."""
    driver = installed()
    lent = [kept(0x50 + number) for number in range(_library._kept.most + 2)]
    gc.collect()
    assert driver.waited == [0x50, 0x51], driver.waited
    assert [number for number, owner in enumerate(lent) if not owner()] == [0, 1]
    assert len(driver.events) == _library._kept.most


CHECKS = {check.__name__: check for check in (
    contexts, captures, kept_memory, kept_in_graphs, many_kept)}

if __name__ == "__main__":
    CHECKS[sys.argv[1]]()
    print("RIGHT")
