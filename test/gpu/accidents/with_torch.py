"""with_torch.py before|after: two ranks. Rank 0 shares a tensor by CUDA IPC with rank 1, and both
exchange derived datatypes in tensors; PyTorch is imported before MPI's first message, or
after one between GPUs that has been pulled."""
import ctypes
import ctypes.util
import os
import pickle
import sys

HANDLE_BYTES = 8192


class Mpi:
    """Open MPI's C interface, as far as it is needed here."""

    def __init__(self):
        home = os.environ.get("CUDA_NC_MPI_LIBRARY") or "libmpi.so.40"
        self._library = ctypes.CDLL(home, mode=ctypes.RTLD_GLOBAL)
        self._call("MPI_Init", None, None)
        rank = ctypes.c_int()
        self._call("MPI_Comm_rank", self._object("ompi_mpi_comm_world"), ctypes.byref(rank))
        self.rank = rank.value

    def _object(self, name):
        return ctypes.byref(ctypes.c_char.in_dll(self._library, name))

    def _call(self, name, *arguments):
        if getattr(self._library, name)(*arguments) != 0:
            raise RuntimeError(f"{name} failed")

    def rows(self, number):
        """Rows of 64 bytes, each 128."""
        made = ctypes.c_void_p()
        self._call("MPI_Type_vector", number, 64, 128, self._object("ompi_mpi_byte"),
                   ctypes.byref(made))
        self._call("MPI_Type_commit", ctypes.byref(made))
        return made

    def send(self, address, count, datatype=None):
        self._call("MPI_Send", ctypes.c_void_p(address), count,
                   datatype or self._object("ompi_mpi_byte"), 1 - self.rank, 1,
                   self._object("ompi_mpi_comm_world"))

    def receive(self, address, count, datatype=None):
        self._call("MPI_Recv", ctypes.c_void_p(address), count,
                   datatype or self._object("ompi_mpi_byte"), 1 - self.rank, 1,
                   self._object("ompi_mpi_comm_world"), None)

    def finalize(self):
        self._call("MPI_Finalize")


def share(mpi, torch, tensor):
    """Rank 0's tensor, on both ranks."""
    from torch.multiprocessing.reductions import rebuild_cuda_tensor, reduce_tensor

    packet = ctypes.create_string_buffer(HANDLE_BYTES)
    if mpi.rank == 0:
        _, arguments = reduce_tensor(tensor)
        text = pickle.dumps(arguments)
        packet[:len(text)] = text
        mpi.send(ctypes.addressof(packet), HANDLE_BYTES)
        return tensor
    mpi.receive(ctypes.addressof(packet), HANDLE_BYTES)
    return rebuild_cuda_tensor(*pickle.loads(packet.raw))


def exchange(mpi, torch, tensor, number):
    rows = mpi.rows(tensor.numel() // 128)
    tensor.fill_(number if mpi.rank == 0 else 0)
    torch.cuda.synchronize()
    (mpi.send if mpi.rank == 0 else mpi.receive)(tensor.data_ptr(), 1, rows)
    if mpi.rank == 1:
        seen = tensor.view(-1, 128).cpu()
        if not (bool((seen[:, :64] == number).all()) and bool((seen[:, 64:] == 0).all())):
            sys.exit(f"WRONG message {number}")


class GpuRows:
    """GPU memory without PyTorch, by the driver: of GPU `ordinal`."""

    def __init__(self, ordinal, size):
        self._driver = ctypes.CDLL("libcuda.so.1")
        self.size, self.address = size, ctypes.c_uint64()
        context, device, count = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
        self._call("cuInit", 0)
        self._call("cuDeviceGetCount", ctypes.byref(count))
        self._call("cuDeviceGet", ctypes.byref(device), ordinal % count.value)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        self._call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(size))

    def _call(self, name, *arguments):
        if getattr(self._driver, name)(*arguments) != 0:
            sys.exit(f"{name} failed")

    def fill(self, byte):
        self._call("cuMemsetD8_v2", self.address, ctypes.c_ubyte(byte), ctypes.c_size_t(self.size))
        self._call("cuCtxSynchronize")

    def bytes(self):
        found = ctypes.create_string_buffer(self.size)
        self._call("cuMemcpyDtoH_v2", found, self.address, ctypes.c_size_t(self.size))
        return found.raw


def pull_without_torch(mpi):
    """A message between GPUs, which is pulled."""
    number, rows = 7, 8192
    memory = GpuRows(mpi.rank, rows * 128)
    memory.fill(number if mpi.rank == 0 else 0)
    made = mpi.rows(rows)
    (mpi.send if mpi.rank == 0 else mpi.receive)(memory.address.value, 1, made)
    if mpi.rank == 1 and memory.bytes() != (bytes([number] * 64) + bytes(64)) * rows:
        sys.exit("WRONG message before PyTorch")


def main():
    if sys.argv[1] == "before":
        import torch
    mpi = Mpi()
    if sys.argv[1] == "after":
        pull_without_torch(mpi)
    import torch
    torch.cuda.set_device(mpi.rank % torch.cuda.device_count())
    own = torch.zeros(1 << 20, dtype=torch.uint8, device="cuda")
    for number in range(1, 40):
        exchange(mpi, torch, own, number)
    shared = share(mpi, torch, own)
    for number in range(40, 80):
        if mpi.rank == 1:
            own = torch.zeros(1 << 20, dtype=torch.uint8, device="cuda")
        exchange(mpi, torch, own, number)
    if mpi.rank == 1 and not bool((shared.view(-1)[:64] == 79).all()):
        sys.exit("WRONG bytes of the shared tensor")
    del shared
    mpi.finalize()


main()
