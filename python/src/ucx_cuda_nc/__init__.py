"""ucx-cuda-nc for Python: strided memory of GPUs and host over MPI and UCX.

    python -m ucx_cuda_nc run -- mpirun -np 2 ./a.out     runs a program with the plugin
    ucx_cuda_nc.enable()                                  the same for this process
    ucx_cuda_nc.mpi(array)                                what mpi4py's calls take
    ucx_cuda_nc.pack, unpack, copy                        strided tensors on their streams
"""
from importlib import metadata

from ._environment import enable, get_include, get_library_dir, get_plugin_dir, get_preload
from ._mpi import mpi
from ._move import copy, pack, unpack

try:
    __version__ = metadata.version("ucx-cuda-nc")
except metadata.PackageNotFoundError:
    __version__ = "unknown"

__all__ = ["copy", "enable", "get_include", "get_library_dir", "get_plugin_dir", "get_preload",
           "mpi", "pack", "unpack"]
