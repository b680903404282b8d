"""Programs of the transport's tests."""
import os

import pytest

from support import product, uct
from support.runner import Runner


def _runner(name):
    return Runner(uct.LIMIT, product.LOGS / "uct" / f"{name}-{os.getpid()}.log", uct.environment())


@pytest.fixture(scope="session")
def build(one_at_a_time):
    """Function that builds one of uct.PROGRAMS, where it is not up to date, and returns its path."""
    built = {}

    def build(name):
        if name not in built:
            with one_at_a_time("programs"):
                run = _runner(f"build-{name}")
                path, command = uct.PROGRAMS[name]
                if command:
                    sources = [product.ROOT / word for word in ("test/uct", "bench", "include")]
                    newest = max(file.stat().st_mtime for source in sources
                                 for file in source.rglob("*") if file.is_file())
                    if not path.exists() or path.stat().st_mtime < newest:
                        run(*command)
                else:
                    run("make", "-s", *uct.MAKE[name])
            built[name] = path
        return built[name]

    return build
