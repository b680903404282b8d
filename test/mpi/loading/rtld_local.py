"""Opens libmpi as Python's packages do, by dlopen with RTLD_LOCAL, and sends a vector from rank 0 to
rank 1: python3 rtld_local.py PATH_OF_LIBMPI, under mpirun."""

import ctypes
import os
import sys

mpi = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_LOCAL)
BLOCKS, STRIDE = 5000, 3


def handle(name):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))


world = handle("ompi_mpi_comm_world")
mpi.MPI_Init(None, None)
rank = ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
vector = ctypes.c_void_p()
mpi.MPI_Type_vector(BLOCKS, 1, STRIDE, handle("ompi_mpi_double"), ctypes.byref(vector))
mpi.MPI_Type_commit(ctypes.byref(vector))
data = (ctypes.c_double * (BLOCKS * STRIDE))()
if rank.value == 0:
    for i in range(BLOCKS * STRIDE):
        data[i] = i + 1
    mpi.MPI_Send(data, 1, vector, 1, 1, world)
    right = True
else:
    mpi.MPI_Recv(data, 1, vector, 0, 1, world, None)
    right = all(data[i] == (i + 1 if i % STRIDE == 0 else 0) for i in range(BLOCKS * STRIDE))
mpi.MPI_Type_free(ctypes.byref(vector))
mpi.MPI_Finalize()
if rank.value == 1:
    print("RIGHT" if right else "WRONG")
sys.exit(0 if right else 1)
