#!/usr/bin/env python3
"""mpi4py with strided tensors: every second column of a matrix goes around a ring of ranks.

    python -m ucx_cuda_nc run -- mpirun -np 2 python examples/mpi4py_strided.py [host|cuda]

cuda takes PyTorch, or else CuPy. Exit status 1 where an element is wrong or a gap was touched."""
import sys

import numpy
import ucx_cuda_nc
from mpi4py import MPI

ROWS, COLUMNS = 1024, 256


def new_matrix(memory, rank):
    """(a matrix of -1, a function that gives it as a NumPy array)"""
    if memory == "host":
        matrix = numpy.full((ROWS, COLUMNS), -1.0)
        return matrix, lambda: matrix
    if memory != "cuda":
        sys.exit(f"no memory is called '{memory}'; there are host and cuda")
    try:
        import torch
        matrix = torch.full((ROWS, COLUMNS), -1.0, dtype=torch.float64,
                            device=f"cuda:{rank % torch.cuda.device_count()}")
        return matrix, lambda: matrix.cpu().numpy()
    except ImportError:
        import cupy
        cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()
        matrix = cupy.full((ROWS, COLUMNS), -1.0)
        return matrix, lambda: cupy.asnumpy(matrix)


def main():
    comm = MPI.COMM_WORLD
    memory = sys.argv[1] if len(sys.argv) > 1 else "host"
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    sent, _ = new_matrix(memory, comm.rank)
    received, read = new_matrix(memory, comm.rank)
    sent[:, ::2] = float(comm.rank)
    # Neither side copies: the datatypes say where the columns lie.
    comm.Sendrecv(ucx_cuda_nc.mpi(sent[:, ::2]), right, recvbuf=ucx_cuda_nc.mpi(received[:, 1::2]),
                  source=left)
    want = numpy.full((ROWS, COLUMNS), -1.0)
    want[:, 1::2] = left
    wrong = comm.allreduce(int((read() != want).sum()))
    if comm.rank == 0:
        print(f"mpi4py_strided: {comm.size} ranks, {memory} memory, {ROWS} rows, every second of "
              f"{COLUMNS} columns: {wrong} wrong elements")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
