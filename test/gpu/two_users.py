#!/usr/bin/env python3
"""Two users run jobs on the same GPUs at the same time: each gets its own bytes."""
import os
import shutil
import subprocess
import tempfile

import common


def case():
    options = common.arguments()
    common.need(options.backend, simulated=True)
    common.skip_if(os.geteuid() != 0 or not shutil.which("setpriv"), "root and setpriv are wanted")
    program = common.accidents()
    env = common.environment(options.backend, common.TRANSPORT)
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    may_read = subprocess.run([*other, "test", "-x", program], timeout=60).returncode == 0
    common.skip_if(not may_read, "the other user may not read this directory")
    job = ["mpirun", "-np", "2", str(program), "messages", "--count", "2000", "--kind",
           common.kind(options.backend)]
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o777)
        beside = subprocess.Popen(["timeout", "300", *other, *job], cwd=home, stdin=subprocess.DEVNULL,
                                  env={**env, "HOME": home, "TMPDIR": home})
        try:
            common.run(*job, env=env, limit=300).must_be_right()
            status = beside.wait(300)
        finally:
            beside.kill()
            beside.wait(60)
    common.fail_if(status != 0, f"the other user's job ends with exit status {status}")


common.main(case)
