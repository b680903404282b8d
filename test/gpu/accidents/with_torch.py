"""with_torch.py before|after: two ranks. Rank 0 shares a tensor by CUDA IPC with rank 1, and both
exchange derived datatypes in tensors; PyTorch is imported before MPI's first message, or after."""
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


def main():
    if sys.argv[1] == "before":
        import torch
    mpi = Mpi()
    # A message in host memory: the product is loaded, and has served something.
    buffer = ctypes.create_string_buffer(1280)
    rows = mpi.rows(10)
    (mpi.send if mpi.rank == 0 else mpi.receive)(ctypes.addressof(buffer), 1, rows)
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
