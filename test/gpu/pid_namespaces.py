#!/usr/bin/env python3
"""One of two ranks is in a PID namespace of its own, as in a container: the bytes are right, by
whatever route."""
import shutil
import subprocess

import common


def case():
    options = common.arguments()
    common.need(options.backend, simulated=True)
    apart = ["unshare", "--pid", "--fork", "--mount-proc"]
    allowed = shutil.which("unshare") and subprocess.run([*apart, "true"], timeout=60).returncode == 0
    common.skip_if(not allowed, "namespaces of one's own are not allowed here")
    program = common.accidents()
    rank = [program, "messages", "--kind", "host"]
    stock = common.run("mpirun", "-np", 1, *rank, ":", "-np", 1, *apart, *rank, limit=180,
                       env=common.environment(options.backend))
    common.skip_if(stock.status != 0, "Open MPI and UCX do not connect these without the product")
    rank = [program, "messages", "--kind", common.kind(options.backend)]
    common.run("mpirun", "-np", 1, *rank, ":", "-np", 1, *apart, *rank, limit=180,
               env=common.environment(options.backend, common.TRANSPORT)).must_be_right()


common.main(case)
