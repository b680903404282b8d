"""Adds the compiled product to the package: that of the prefix CUDA_NC_HOME. contrib/wheel.sh calls it."""
import os
import pathlib
import re
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.dist import Distribution

HERE = pathlib.Path(__file__).resolve().parent
MODULE = "lib/ucx-cuda-nc/libuct_cudanc.so.0"
# File in the prefix: file in the package, and where it looks for libcuda_nc.so.0.
PROGRAMS = {
    "lib/libcuda_nc.so.0": ("lib/libcuda_nc.so.0", None),
    "lib/libcuda_nc_preload.so": ("lib/libcuda_nc_preload.so", None),
    MODULE: (MODULE, "$ORIGIN/.."),
    "bin/nc_info": ("bin/nc_info", "$ORIGIN/../lib"),
    "bin/nc_perftest": ("bin/nc_perftest", "$ORIGIN/../lib"),
}


def version():
    text = (HERE.parent / "configure.ac").read_text()
    return re.search(r"^AC_INIT\(\[ucx-cuda-nc\], \[([^]]+)\]", text, re.M).group(1)


class Build(build_py):
    def run(self):
        super().run()
        prefix = os.environ.get("CUDA_NC_HOME")
        if not prefix:
            raise SystemExit("CUDA_NC_HOME must name an installed ucx-cuda-nc; contrib/wheel.sh "
                             "builds one and sets it")
        home, package = pathlib.Path(prefix), pathlib.Path(self.build_lib) / "ucx_cuda_nc"
        for source, (target, run_path) in PROGRAMS.items():
            self.add(home / source, package / target)
            subprocess.run(["strip", "--strip-unneeded", package / target], check=True)
            rewrite = ["--force-rpath", "--set-rpath", run_path] if run_path else ["--remove-rpath"]
            subprocess.run(["patchelf", *rewrite, package / target], check=True)
        # A wheel has no links. Packages with UCX libraries of other names look for the second one.
        shutil.copy2(package / MODULE, package / f"{MODULE}.0.0")
        # For linkers.
        (package / "lib/libcuda_nc.so").write_text("INPUT(libcuda_nc.so.0)\n")
        self.add(home / "include/cuda_nc/cuda_nc.h", package / "include/cuda_nc/cuda_nc.h")

    @staticmethod
    def add(source, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


class Wheel(bdist_wheel):
    """It has programs, but nothing of a certain Python."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class Compiled(Distribution):
    def has_ext_modules(self):
        return True


# What the licence and the description say stands once, above.
for name in ("LICENSE",):
    if not (HERE / name).exists():
        shutil.copy2(HERE.parent / name, HERE / name)

setup(version=version(), cmdclass={"build_py": Build, "bdist_wheel": Wheel}, distclass=Compiled)
