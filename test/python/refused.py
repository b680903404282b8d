"""What ucx_cuda_nc.mpi and mpi4py refuse, and what they take although it is strange. One rank."""
import numpy
import ucx_cuda_nc
from mpi4py import MPI
from ucx_cuda_nc import _mpi

from refusals import refused

comm = MPI.COMM_SELF


def sent(array, target):
    """Through MPI, into a target of the same number of elements."""
    request = comm.Isend(ucx_cuda_nc.mpi(array), 0)
    comm.Recv(ucx_cuda_nc.mpi(target), 0)
    request.Wait()


values = numpy.arange(12.0)
# Read several times: may be sent, not received.
wide = numpy.broadcast_to(values[:3], (4, 3))
target = numpy.zeros((4, 6))
sent(wide, target[:, ::2])
assert (target[:, ::2] == wide).all() and not target[:, 1::2].any()
windows = numpy.lib.stride_tricks.as_strided(values, (5, 3), (8, 8))
for array in (wide, windows):
    assert "not writable" in refused(BufferError, lambda: comm.Irecv(ucx_cuda_nc.mpi(array), 0))
locked = values.copy()
locked.flags.writeable = False
assert "not writable" in refused(BufferError, lambda: comm.Irecv(ucx_cuda_nc.mpi(locked[::2]), 0))
# A scalar has no memory to receive into.
scalar, got = numpy.float64(1 / 3), numpy.zeros(1)
assert "not writable" in refused(BufferError, lambda: comm.Irecv(ucx_cuda_nc.mpi(scalar), 0))
sent(scalar, got)
assert got[0] == scalar
# Interleaved, but no byte twice.
woven = numpy.lib.stride_tricks.as_strided(numpy.zeros(40, "i1"), (3, 2), (2, 3))
assert not _mpi._arrays.overlaps(_mpi._arrays.view_of(woven))

refused(TypeError, lambda: ucx_cuda_nc.mpi([1, 2]))
refused(TypeError, lambda: ucx_cuda_nc.mpi(numpy.array([None, {}])))
objects = numpy.zeros(3, [("i", "i8"), ("more", [("o", "O")], 2)])
masked = numpy.ma.array(values, mask=values > 3)


class Described:
    """Of another package than NumPy."""

    def __init__(self, described):
        self.__array_interface__ = described


for odd, why in ((objects, "Python objects"), (Described(objects.__array_interface__), "Python objects"),
                 (masked, "mask"), (masked[::2], "mask"),
                 (Described({**values.__array_interface__, "data": values.tobytes()}), "buffer")):
    assert why in refused(TypeError, lambda: ucx_cuda_nc.mpi(odd))

# Nothing, one element, no dimension, bytes backwards.
empty = numpy.zeros((0, 5))[:, ::2]
sent(empty, empty)
one, got = numpy.array(7.0), numpy.zeros(3)
sent(one, got[1:2])
assert got.tolist() == [0, 7, 0]
back, bytes_ = numpy.arange(9, dtype="i1")[::-1], numpy.zeros(18, "i1")
sent(back, bytes_[::2])
assert (bytes_[::2] == back).all() and not bytes_[1::2].any()

# A datatype is made once, and more of them than are kept are freed again.
same = [ucx_cuda_nc.mpi(values[::2])[2] for _ in range(2)]
assert same[0] is same[1]
matrix, got = numpy.arange(700.0 * 3).reshape(700, 3), numpy.zeros((700, 2))
for rows in range(2, 602):
    sent(matrix[:rows, 1], got[:rows, 0])
    assert (got[:rows, 0] == matrix[:rows, 1]).all()
assert len(_mpi._types._kept) <= _mpi._KEPT
assert same[0] != MPI.DATATYPE_NULL  # someone has it
print("RIGHT")
