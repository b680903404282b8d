"""MPICH loaded after a program's first use of UCX: late.py UCP MPI USER (paths of libraries)"""
import ctypes
import sys

ucp = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
version = [ctypes.c_uint() for _ in range(3)]
ucp.ucp_get_version(*(ctypes.byref(number) for number in version))
params = (ctypes.c_uint64 * 64)(1, 1)  # UCP_PARAM_FIELD_FEATURES, UCP_FEATURE_TAG
context = ctypes.c_void_p()
ucp.ucp_init_version.restype = ctypes.c_int8
assert ucp.ucp_init_version(version[0], version[1], params, None, ctypes.byref(context)) == 0

ctypes.CDLL(sys.argv[2], ctypes.RTLD_GLOBAL)
sys.exit(ctypes.CDLL(sys.argv[3]).pack_and_reduce())
