#!/usr/bin/env python3
"""One of two UCP processes is in a PID namespace of its own, as in a container: the bytes are right, by
whatever route. UCX itself connects such processes by tcp alone."""
import shlex
import shutil
import subprocess

import common
from support import product

CHANGES = {"UCX_TLS": "tcp,self,cuda_copy,cuda_ipc,cuda_nc"}
APART = ["unshare", "--pid", "--fork", "--mount-proc"]
PORT = 14187


def both(environment, transport, gpus):
    """A server, and a client that is apart."""
    words = [product.INSTALL / "bin/nc_perftest", "p2p", "-p", PORT, "--transport", transport,
             "--gpus", gpus,
             "-l", "vector:*,64,128", "-l", "indexed:300,4,64,4,7", "--sizes", "4K,64K,1M",
             "-t", "latency,bidir", "--timeout", 30, "--seconds", "0.5", "-n", 100]
    server = shlex.join(str(word) for word in words)
    client = shlex.join([*APART, *(str(word) for word in words), "localhost"])
    return common.run("sh", "-c", f"{server} & {client}; its=$?; wait $! && exit $its", limit=180,
                      env=environment)


def case():
    options = common.arguments()
    common.need(options.backend, simulated=True)
    allowed = shutil.which("unshare") and subprocess.run([*APART, "true"], timeout=60).returncode == 0
    common.skip_if(not allowed, "namespaces of one's own are not allowed here")
    environment = common.environment(options.backend, common.TRANSPORT, CHANGES)
    gpus = "0,0" if options.backend == "cuda" and common.gpus() < 2 else "0,1"
    common.skip_if(both(environment, "n", gpus).status != 0, "UCX does not connect these")
    both(environment, "y", gpus).must_be_right()


common.main(case)
