"""Two ranks of mpi4py: random strided arrays there and back, every byte and gap compared.

usage: mpirun -np 2 python ranks.py KIND_OF_RANK_0 KIND_OF_RANK_1 NUMBER"""
import sys

import numpy
import ucx_cuda_nc
from mpi4py import MPI

import memory


def main():
    kinds, number = sys.argv[1:3], int(sys.argv[3])
    comm = MPI.COMM_WORLD
    own, peer = kinds[comm.rank], 1 - comm.rank
    # DLPack knows no structures; in simulated GPU memory Open MPI without CUDA serves derived types
    # alone.
    types = memory.TYPES + ([] if {"dlpack", "old"} & set(kinds) else memory.ODD_TYPES)
    rng = numpy.random.default_rng(memory.seed())
    print(f"seed {memory.seed()}", flush=True)
    case = 0
    while case < number:
        array, index = memory.random_array(rng, types)
        whole = array.copy()
        if not array[index].size or (set(kinds) != {"host"} and (
                array[index].flags.c_contiguous or array[index].ndim == 0)):
            continue
        case += 1
        buffer = memory.KINDS[own](array)
        if comm.rank == 0:
            buffer.write(whole)
            comm.Send(ucx_cuda_nc.mpi(buffer[index]), peer, case)
            buffer.write(numpy.zeros_like(whole))
            request = comm.Irecv(ucx_cuda_nc.mpi(buffer[index]), peer, case)
            request.Wait()
        else:
            buffer.write(numpy.zeros_like(whole))
            comm.Recv(ucx_cuda_nc.mpi(buffer[index]), peer, case)
        want = numpy.zeros_like(whole)
        want[index] = whole[index]
        if comm.rank == 1:
            assert memory.same(buffer.read(), want), f"case {case}: {array.dtype} {array.shape} {index}"
            request = comm.Isend(ucx_cuda_nc.mpi(buffer[index]), peer, case)
            request.Wait()
        assert memory.same(buffer.read(), want), f"case {case}: {array.dtype} {array.shape} {index}"
    comm.Barrier()
    print(f"rank {comm.rank}: {number} RIGHT", flush=True)


if __name__ == "__main__":
    main()
