#!/usr/bin/env python3
"""Many blocks between the memory of two processes by NIXL's UCX backend: time to post, time until done.

usage: bench/nixl_blocks.py [--memory vram|dram|sim] [--operation WRITE|READ] [--order ascending|random]
                            [--repeats N] [--stop-peer] [BLOCKSxBYTES ...]

Wants NIXL's Python package on the path (pip install nixl-cu13), numpy, and PyTorch for vram. The
second process has the second GPU, where there is one. Blocks lie at twice their length. Both sides
hold random bytes, others on each. After the first transfer, which is not timed, and after the last
one every byte and every gap of the target is compared, and the target is made as it was before. sim
is the simulated GPU of ucx-cuda-nc (UCX_CUDA_NC_GPU=sim, UCX_MEMTYPE_CACHE=n).
--stop-peer stops the second process while blocks are timed, as its thread of NIXL never sleeps: for
machines of two cores. Exit status 1 where a byte is wrong."""
import argparse
import ctypes
import importlib
import multiprocessing
import os
import signal
import sys
import time

import numpy

CASES = ["65536x4096", "16384x16384", "12288x8192", "4096x65536", "1024x4096", "64x65536",
         "1x67108864"]
SOURCE, TARGET = 1, 2  # what random bytes are made from


class Dram:
    kind, device = "DRAM", 0

    def __init__(self, size, _rank):
        self.bytes = numpy.zeros(size, numpy.uint8)
        self.address = self.bytes.ctypes.data

    def write(self, content):
        self.bytes[:] = content

    def read(self, size):
        return self.bytes[:size]


class Vram:
    kind = "VRAM"

    def __init__(self, size, rank):
        import torch
        self.torch = torch
        self.device = rank % torch.cuda.device_count()
        torch.cuda.set_device(self.device)
        self.bytes = torch.zeros(size, dtype=torch.uint8, device="cuda")
        self.address = self.bytes.data_ptr()

    def write(self, content):
        self.bytes.copy_(self.torch.from_numpy(content))
        self.torch.cuda.synchronize()

    def read(self, size):
        self.torch.cuda.synchronize()
        return self.bytes[:size].cpu().numpy()


class Sim:
    kind, device = "VRAM", 0

    def __init__(self, size, _rank):
        self.product = ctypes.CDLL("libcuda_nc.so", ctypes.RTLD_GLOBAL)
        self.product.cuda_nc_sim_malloc.restype = ctypes.c_void_p
        self.product.cuda_nc_sim_malloc.argtypes = [ctypes.c_size_t]
        self.product.cuda_nc_sim_memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p,
                                                    ctypes.c_size_t]
        self.address = self.product.cuda_nc_sim_malloc(size)

    def write(self, content):
        self.product.cuda_nc_sim_memcpy(self.address, content.ctypes.data, content.size)

    def read(self, size):
        bytes_ = numpy.empty(size, numpy.uint8)
        self.product.cuda_nc_sim_memcpy(bytes_.ctypes.data, self.address, size)
        return bytes_


MEMORIES = {"dram": Dram, "vram": Vram, "sim": Sim}


def nixl():
    for name in ("nixl_cu13._api", "nixl_cu12._api", "nixl._api"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    sys.exit("NIXL's Python package is not here: pip install nixl-cu13")


def agent(name):
    api = nixl()
    return api.nixl_agent(name, api.nixl_agent_config(backends=["UCX"]))


def random_bytes(seed, span):
    return numpy.frombuffer(numpy.random.default_rng(seed).bytes(span), numpy.uint8).copy()


class Target:
    """Memory that blocks are to come to, from memory filled with SOURCE's bytes."""

    def __init__(self, memory, span):
        self.memory = memory
        self.before, self.source = random_bytes(TARGET, span), random_bytes(SOURCE, span)
        memory.write(self.before)

    def is_right(self, number, length):
        """Whether all blocks came and nothing else changed. Then it is as before."""
        def rows(of):
            return of[:2 * number * length].reshape(number, 2 * length)
        got = rows(self.memory.read(2 * number * length))
        right = bool((got[:, :length] == rows(self.source)[:, :length]).all() and
                     (got[:, length:] == rows(self.before)[:, length:]).all())
        self.memory.write(self.before)
        return right


def peer(connection, chosen, span):
    memory = MEMORIES[chosen.memory](span, 1)
    if chosen.operation == "WRITE":
        target = Target(memory, span)
    else:
        memory.write(random_bytes(SOURCE, span))
    own = agent("peer")
    own.register_memory([(memory.address, span, memory.device, "")], mem_type=memory.kind)
    connection.send((own.get_agent_metadata(), memory.address, memory.device))
    while True:
        case = connection.recv()
        if case is None:
            break
        connection.send(target.is_right(*case))


def descriptors(address, device, offsets, length):
    count = len(offsets)
    return numpy.stack([offsets + numpy.uint64(address), numpy.full(count, length, numpy.uint64),
                        numpy.full(count, device, numpy.uint64)], 1)


def measure(own, memory, remote, chosen, number, length, is_right, stop_peer):
    """(us to prepare, to post, until done, whether all is right); medians. Calls stop_peer(True) when
    the first transfer has ended, and stop_peer(False) when all have."""
    offsets = numpy.arange(number, dtype=numpy.uint64) * numpy.uint64(2 * length)
    if chosen.order == "random":
        numpy.random.default_rng(1).shuffle(offsets)
    begin = time.perf_counter()
    here = own.prep_xfer_dlist("NIXL_INIT_AGENT",
                               descriptors(memory.address, memory.device, offsets, length),
                               memory.kind)
    there = own.prep_xfer_dlist("peer", descriptors(*remote, offsets, length), memory.kind)
    every = numpy.arange(number)
    transfer = own.make_prepped_xfer(chosen.operation, here, every, there, every)
    prepared = time.perf_counter() - begin
    posted, done = [], []
    for turn in range(chosen.repeats + 1):
        if turn == 1:
            right = is_right(number, length)
            stop_peer(True)
        begin = time.perf_counter()
        state = own.transfer(transfer)
        posted.append(time.perf_counter() - begin)
        while state != "DONE":
            if state == "ERR":
                sys.exit(f"{number} x {length}: NIXL says that the transfer failed")
            state = own.check_xfer_state(transfer)
        done.append(time.perf_counter() - begin)
    stop_peer(False)
    right &= is_right(number, length)
    own.release_xfer_handle(transfer)
    own.release_dlist_handle(here)
    own.release_dlist_handle(there)
    median = [sorted(times[1:])[chosen.repeats // 2] * 1e6 for times in (posted, done)]
    return prepared * 1e6, *median, right


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", choices=MEMORIES, default="vram")
    parser.add_argument("--operation", choices=("WRITE", "READ"), default="WRITE")
    parser.add_argument("--order", choices=("ascending", "random"), default="ascending")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--stop-peer", action="store_true")
    parser.add_argument("cases", nargs="*", default=CASES)
    chosen = parser.parse_args()
    cases = [tuple(map(int, case.split("x"))) for case in chosen.cases]
    span = 2 * max(number * length for number, length in cases)
    connection, far = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=peer, args=(far, chosen, span))
    process.start()
    far.close()

    def stop_peer(stops):
        if chosen.stop_peer:
            os.kill(process.pid, signal.SIGSTOP if stops else signal.SIGCONT)

    memory = MEMORIES[chosen.memory](span, 0)
    if chosen.operation == "WRITE":
        memory.write(random_bytes(SOURCE, span))

        def is_right(*case):
            connection.send(case)
            return connection.recv()
    else:
        is_right = Target(memory, span).is_right
    own = agent("own")
    own.register_memory([(memory.address, span, memory.device, "")], mem_type=memory.kind)
    metadata, *remote = connection.recv()
    own.add_remote_agent(metadata)
    print(f"# {chosen.memory}, {chosen.operation}, {chosen.order}; us, median of {chosen.repeats}")
    print(f"{'blocks':>8} {'bytes':>9} {'MB':>8} {'prepare':>10} {'post':>10} {'done':>10} "
          f"{'GB/s':>8}  right", flush=True)
    wrong = False
    for number, length in cases:
        prepare, post, done, right = measure(own, memory, remote, chosen, number, length,
                                             is_right, stop_peer)
        wrong |= not right
        total = number * length
        print(f"{number:8d} {length:9d} {total / 1e6:8.1f} {prepare:10.0f} {post:10.1f} "
              f"{done:10.1f} {total / done / 1e3:8.2f}  {'yes' if right else 'NO'}", flush=True)
    connection.send(None)
    process.join(10)
    if process.is_alive():
        process.kill()
    sys.stdout.flush()
    os._exit(1 if wrong else 0)  # NIXL 1.5.1 crashes in its own destructors


if __name__ == "__main__":
    main()
