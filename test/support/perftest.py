"""nc_perftest as the tests of the scripts run it."""
import json
import os

from support import product

PROGRAM = product.INSTALL / "bin/nc_perftest"
NC_INFO = product.INSTALL / "bin/nc_info"


def plain(**changes):
    """The caller's environment, without env.sh."""
    merged = {**os.environ, "UCX_CUDA_NC_GPU": "sim", **changes}
    return {name: str(value) for name, value in merged.items() if value is not None}


def job(gpu="sim", **changes):
    """With the UCX of the job."""
    return product.environment("UCX_PLUGIN_PATH", UCX_CUDA_NC_GPU=gpu, UCX_CUDA_NC_SIM_DELAY=20,
                               **changes)


class Perftest:
    """Runs nc_perftest."""

    def __init__(self, run):
        self._run = run

    def __call__(self, *arguments, env=None, **options):
        return self._run(PROGRAM, *arguments, env=env or plain(), **options)

    def p2p(self, *arguments, env=None, **options):
        return self(*("p2p", *arguments), env=env or job(), **options)

    def fails_with(self, text, *arguments, env=None):
        """With a bad status, and saying so."""
        result = self(*arguments, env=env, status=None)
        assert result.status != 0
        assert text in result.output

    def p2p_fails_with(self, text, *arguments, env=None):
        self.fails_with(text, "p2p", *arguments, env=env or job())


def rows_of(path):
    return json.loads(path.read_text())["rows"]


def result_file(path, microseconds):
    """A result file of one row."""
    names = ("min_us", "median_low_us", "median_us", "median_high_us")
    path.write_text(json.dumps({"mode": "pack", "device": "d", "rows": [
        {"layout": "v", "direction": "pack", "time": dict.fromkeys(names, microseconds)}]}))
    return path
