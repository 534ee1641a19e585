"""Builds the module with CMake in build/release; the rest is in pyproject.toml."""
import os
import re
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup

top = Path(__file__).resolve().parent
os.chdir(top)
version = re.search(r'version = "(.*)"', Path("src/assay/base/version.h").read_text())[1]
subprocess.run(
    ["cmake", "--preset", "release", f"-DPython_EXECUTABLE={os.path.realpath(sys.executable)}"],
    check=True,
    stdout=subprocess.DEVNULL,
)
subprocess.run(["cmake", "--build", "build/release", "--target", "assay_python"], check=True)


class Native(Distribution):
    """A wheel for one kind of processor."""

    def has_ext_modules(self):
        return True


setup(
    version=version,
    distclass=Native,
    options={"egg_info": {"egg_base": "build"}, "build": {"build_base": "build/wheel"}},
)
