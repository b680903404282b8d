"""Copies of UCX under other names, and libraries that use them."""
import os
import pathlib
import shutil

import pytest

from support import product, uct
from support.runner import Runner

HERE = pathlib.Path(__file__).parent
PARTS = ("ucp", "uct", "ucs", "ucm")


class Builder:
    def __init__(self, directory, fetch):
        self._directory = directory
        self._fetch = fetch
        self._done = {}
        self._run = Runner(600, product.LOGS / f"two_ucx/build-{os.getpid()}.log",
                           product.environment())

    def _once(self, key, make):
        if key not in self._done:
            self._done[key] = make()
        return self._done[key]

    def ucx(self, release, naming):
        """The directory of a release's libraries; without `naming` under their own names."""
        if naming is None:
            return self._fetch(release) / "lib"
        return self._once((release, naming), lambda: self._copy(release, naming))

    def _copy(self, release, naming):
        if not shutil.which("patchelf"):
            pytest.skip("patchelf is not installed")
        source = self._fetch(release) / "lib"
        target = self._directory / f"{release}-{naming.format(part='x')}"
        target.mkdir()
        names = {f"lib{part}.so.0": naming.format(part=part) for part in PARTS}
        for old, new in names.items():
            shutil.copy(source / old, target / new)
            # One change at a time: patchelf 0.14 mixes up the names of several.
            for change in (("--set-soname", new), ("--set-rpath", "$ORIGIN"),
                           *(("--replace-needed", *pair) for pair in names.items())):
                self._run("patchelf", *change, target / new)
        return target

    def client(self, release, naming=None):
        """client.c with this UCX; some bind their calls when they are loaded, some as they go."""
        return self._once(("client", release, naming), lambda: self._client(release, naming))

    def _client(self, release, naming):
        ucx = self.ucx(release, naming)
        library = self._directory / f"libclient-{release}-{(naming or 'x').format(part='x')}.so"
        name = (naming or "lib{part}.so.0").format
        binding = "now" if naming and naming.endswith(".so.0") else "lazy"
        self._run("gcc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-O2",
                  f"-Wl,-z,{binding}",
                  HERE / "client.c", f"-I{product.ROOT}", "-isystem",
                  uct.RELEASES / release / "libucx/include", f"-L{ucx}",
                  f"-l:{name(part='ucp')}", f"-l:{name(part='ucs')}", f"-Wl,-rpath,{ucx}",
                  f"-Wl,-rpath-link,{ucx}", "-Wl,--disable-new-dtags", "-ldl", "-o", library)
        return library

    def later_ucx(self):
        """UCX 1.22 under its own names, with a function that only later releases have."""
        return self._once("later", self._later)

    def _later(self):
        target = self._directory / "later"
        shutil.copytree(self._fetch(uct.LAST) / "lib", target)
        source = target / "later.c"
        source.write_text("void uct_ep_outstanding_purge(void) {}\n")
        self._run("gcc", "-shared", "-fPIC", source, "-o", target / "liblater.so")
        if not shutil.which("patchelf"):
            pytest.skip("patchelf is not installed")
        self._run("patchelf", "--add-needed", "liblater.so", target / "libuct.so.0")
        self._run("patchelf", "--set-rpath", "$ORIGIN", target / "libuct.so.0")
        return target

    def mpi_part(self):
        return self._once("mpi", lambda: self._compile(
            "mpicc", "mpi_part.c", "libmpi_part.so", "-shared", "-fPIC", "-ldl"))

    def steps(self):
        return self._once("steps", lambda: self._compile("gcc", "steps.c", "steps", "-ldl"))

    def _compile(self, compiler, source, target, *options):
        self._run(compiler, "-Wall", "-Wextra", "-Werror", "-O1", HERE / source, *options, "-o",
                  self._directory / target)
        return self._directory / target


@pytest.fixture(scope="session")
def builder(tmp_path_factory, fetch):
    return Builder(tmp_path_factory.mktemp("two_ucx"), fetch)
