"""pack, unpack and copy of random strided tensors against NumPy, gaps included.

usage: python moves.py KIND NUMBER"""
import sys
import types

import numpy
import ucx_cuda_nc

import memory


def main():
    kind, number = sys.argv[1], int(sys.argv[2])
    make = memory.KINDS[kind]
    elements = memory.TYPES + ([] if "l" in kind else memory.ODD_TYPES)
    rng = numpy.random.default_rng(memory.seed())
    print(f"seed {memory.seed()}", flush=True)
    stream = None if kind == "host" else memory.product().cuda_nc_sim_stream_create(0)

    def wait():
        if stream is not None:
            assert memory.product().cuda_nc_sim_stream_synchronize(stream) == 0

    for case in range(number):
        array, index = memory.random_array(rng, elements)
        strided, what = array[index], f"case {case}: {array.dtype} {array.shape} {index}"
        source, packed = make(array), make(numpy.empty_like(strided, order="C"))
        source.write(array)
        given = {} if kind == "host" else {"stream": stream}
        if kind == "host":
            assert memory.same(ucx_cuda_nc.pack(source[index]), strided), what
        ucx_cuda_nc.pack(source[index], out=packed[...], **given)
        wait()
        assert memory.same(packed.read(), numpy.ascontiguousarray(strided)), what
        target = make(array)
        target.write(numpy.zeros_like(array))
        ucx_cuda_nc.unpack(packed[...], target[index], **given)
        wait()
        want = numpy.zeros_like(array)
        want[index] = strided
        assert memory.same(target.read(), want), what
        # From one view to another one with the same shape.
        turned = numpy.zeros(strided.shape[::-1] + (2,), strided.dtype)
        other = make(turned)
        other.write(turned)
        view = other[..., 1]
        reversed_ = (view.T if kind == "host" else
                     type(other)(other.like, other.base, other.model[..., 1].T))
        ucx_cuda_nc.copy(source[index], reversed_, **given)
        wait()
        turned[..., 1].T[...] = strided
        assert memory.same(other.read(), turned), what
    if kind == "interface":
        waits_for_the_stream(stream)
    print(f"{number} RIGHT")


class Torch(memory.Interface):
    """As PyTorch's tensors: it names no stream, and means the current one."""
    device = 0

    def is_conj(self):
        return False

    is_neg = is_conj

    @property
    def __cuda_array_interface__(self):
        described = super().__cuda_array_interface__
        del described["stream"]
        return {**described, "version": 2}


class Subclass(Torch):
    """Packages on PyTorch have some."""


def waits_for_the_stream(stream):
    """mpi() returns when the stream that an array names is through, or PyTorch's current one. The
    simulated GPU takes its time (UCX_CUDA_NC_SIM_DELAY)."""
    waits_for(stream, memory.Interface)
    current = types.SimpleNamespace(cuda_stream=stream)
    sys.modules["torch"] = types.SimpleNamespace(
        Tensor=Torch, cuda=types.SimpleNamespace(current_stream=lambda device: current))
    waits_for(stream, Torch)
    waits_for(stream, Subclass)


def waits_for(stream, kind):
    array = numpy.arange(1000, dtype="i4")
    source, packed = memory.Interface(array), kind(array[::2].copy(), stream=stream)
    source.write(array)
    packed.write(numpy.zeros(500, "i4"))
    ucx_cuda_nc.pack(source[::2], out=packed)  # on the stream of the array: out names it
    ucx_cuda_nc.mpi(packed[::2])
    assert (packed.read() == array[::2]).all()


if __name__ == "__main__":
    main()
