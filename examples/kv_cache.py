#!/usr/bin/env python3
"""A paged key-value cache by NIXL: a process that decodes reads the pages of one request from a process
that has filled them. The pages lie at random places on both sides.

    pip install nixl-cu13
    python examples/kv_cache.py [host|cuda|sim] [--pages N] [--page-bytes N]

cuda takes PyTorch, or else CuPy; the second process has the second GPU, where there is one. sim is the
simulated GPU of ucx-cuda-nc. Exit status 1 where a byte is wrong or another page was touched."""
import argparse
import ctypes
import importlib
import multiprocessing
import os
import sys

# Before NIXL loads its UCX. Many pages then go by one kernel.
import ucx_cuda_nc
ucx_cuda_nc.enable()

import numpy  # noqa: E402

EMPTY = 7


class Host:
    kind, device = "DRAM", 0

    def __init__(self, cache, _rank):
        self.bytes = cache.copy()
        self.address = self.bytes.ctypes.data

    def read(self):
        return self.bytes


class Cuda:
    kind = "VRAM"

    def __init__(self, cache, rank):
        try:
            import torch
            self.device = rank % torch.cuda.device_count()
            self.tensor = torch.from_numpy(cache).to(f"cuda:{self.device}")
            torch.cuda.synchronize(self.device)
            self.address, self.read = self.tensor.data_ptr(), lambda: self.tensor.cpu().numpy()
        except ImportError:
            import cupy
            self.device = rank % cupy.cuda.runtime.getDeviceCount()
            cupy.cuda.Device(self.device).use()
            self.tensor = cupy.asarray(cache)
            cupy.cuda.get_current_stream().synchronize()
            self.address, self.read = self.tensor.data.ptr, lambda: cupy.asnumpy(self.tensor)


class Sim:
    kind, device = "VRAM", 0

    def __init__(self, cache, _rank):
        self.product = ctypes.CDLL(str(ucx_cuda_nc.get_library_dir() / "libcuda_nc.so.0"))
        self.product.cuda_nc_sim_malloc.restype = ctypes.c_void_p
        self.product.cuda_nc_sim_malloc.argtypes = [ctypes.c_size_t]
        self.product.cuda_nc_sim_memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p,
                                                    ctypes.c_size_t]
        self.like = numpy.empty_like(cache)
        self.address = self.product.cuda_nc_sim_malloc(cache.nbytes)
        self.product.cuda_nc_sim_memcpy(self.address, cache.ctypes.data, cache.nbytes)

    def read(self):
        self.product.cuda_nc_sim_memcpy(self.like.ctypes.data, self.address, self.like.nbytes)
        return self.like


MEMORIES = {"host": Host, "cuda": Cuda, "sim": Sim}


def agent(name):
    for package in ("nixl_cu13._api", "nixl_cu12._api", "nixl._api"):
        try:
            api = importlib.import_module(package)
            return api.nixl_agent(name, api.nixl_agent_config(backends=["UCX"]))
        except ImportError:
            continue
    sys.exit("NIXL's Python package is not here: pip install nixl-cu13")


def filled_cache(chosen):
    return numpy.random.default_rng(1).integers(0, 256, 2 * chosen.pages * chosen.page_bytes,
                                                numpy.uint8)


def pages_of(memory, table, chosen):
    """One row for each page: address, bytes, GPU."""
    count = len(table)
    return numpy.stack([numpy.uint64(memory[0]) + table * numpy.uint64(chosen.page_bytes),
                        numpy.full(count, chosen.page_bytes, numpy.uint64),
                        numpy.full(count, memory[1], numpy.uint64)], 1)


def prefill(connection, chosen):
    cache = MEMORIES[chosen.memory](filled_cache(chosen), 1)
    own = agent("prefill")
    own.register_memory([(cache.address, 2 * chosen.pages * chosen.page_bytes, cache.device, "")],
                        mem_type=cache.kind)
    # Which pages belong to the request: half of the cache, in no order.
    table = numpy.random.default_rng(2).permutation(2 * chosen.pages)[:chosen.pages]
    connection.send((own.get_agent_metadata(), (cache.address, cache.device), table))
    connection.recv()
    os._exit(0)  # NIXL 1.5.1 crashes in its own destructors


def decode(connection, chosen):
    size = 2 * chosen.pages * chosen.page_bytes
    cache = MEMORIES[chosen.memory](numpy.full(size, EMPTY, numpy.uint8), 0)
    own = agent("decode")
    own.register_memory([(cache.address, size, cache.device, "")], mem_type=cache.kind)
    metadata, remote, theirs = connection.recv()
    own.add_remote_agent(metadata)
    ours = numpy.random.default_rng(3).permutation(2 * chosen.pages)[:chosen.pages]
    here = own.prep_xfer_dlist("NIXL_INIT_AGENT", pages_of(
        (cache.address, cache.device), ours.astype(numpy.uint64), chosen), cache.kind)
    there = own.prep_xfer_dlist("prefill", pages_of(remote, theirs.astype(numpy.uint64), chosen),
                                cache.kind)
    every = numpy.arange(chosen.pages)
    transfer = own.make_prepped_xfer("READ", here, every, there, every)
    state = own.transfer(transfer)
    while state != "DONE":
        if state == "ERR":
            sys.exit("NIXL says that the transfer failed")
        state = own.check_xfer_state(transfer)
    want = numpy.full((2 * chosen.pages, chosen.page_bytes), EMPTY, numpy.uint8)
    want[ours] = filled_cache(chosen).reshape(want.shape)[theirs]
    return int((cache.read() != want.reshape(-1)).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("memory", nargs="?", default="host")
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--page-bytes", type=int, default=4096)
    chosen = parser.parse_args()
    if chosen.memory not in MEMORIES:
        sys.exit(f"no memory is called '{chosen.memory}'; there are {', '.join(MEMORIES)}")
    connection, far = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=prefill, args=(far, chosen))
    process.start()
    far.close()
    try:
        wrong = decode(connection, chosen)
        connection.send(True)
    finally:
        process.join(10)
        if process.is_alive():
            process.kill()
    print(f"kv_cache: {chosen.memory} memory, {chosen.pages} pages of {chosen.page_bytes} bytes: "
          f"{wrong} wrong bytes", flush=True)
    os._exit(wrong != 0)  # see prefill()


if __name__ == "__main__":
    main()
