"""Builds the library with CMake in build/release and packs it with the module; the rest is in pyproject.toml."""
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70
    from wheel.bdist_wheel import bdist_wheel

os.chdir(Path(__file__).resolve().parent)
version = re.search(r'version = "(.*)"', Path("src/assay/base/version.h").read_text())[1]
built = Path("build/release/python/assay")
made = ["libassay.so", "_library.py", "_verbs.py", "_verbs.pyi"]


class Build(build_py):
    """The module in Python, and what CMake makes."""

    def run(self):
        super().run()
        subprocess.run(["cmake", "--preset", "release"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", "build/release", "--target", "assay_python"], check=True)
        for name in made:
            shutil.copy2(built / name, Path(self.build_lib, "assay", name))


class Source(sdist):
    """What CMake needs, and the commit, which is not known where there is no history."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        found = subprocess.run(["git", "describe", "--always", "--exclude=*", "--abbrev=7", "--dirty=+"], capture_output=True, text=True)
        if found.returncode == 0:
            script = Path(base_dir, "cmake/commit.cmake")
            text = script.read_text().replace("$Format:%h$", found.stdout.strip())
            script.unlink()  # it may be a link to ours
            script.write_text(text)


def platform_tag():
    """manylinux with the release of glibc whose symbols the library needs, where it needs no library but those of glibc."""
    kind = f"linux_{platform.machine()}"
    headers = subprocess.run(["objdump", "-p", built / "libassay.so"], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"NEEDED +(\S+)", headers)
    if not all(re.match(r"(libc|libm|libdl|libpthread|ld-linux.*)\.so", name) for name in needed):
        return kind
    newest = max(tuple(map(int, release.split("."))) for release in re.findall(r"GLIBC_([0-9.]+)", headers))
    return f"many{kind}".replace("linux_", f"linux_{newest[0]}_{newest[1]}_", 1)


class Wheel(bdist_wheel):
    """A wheel for any Python 3, as the library is called through ctypes, and for one kind of processor."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", platform_tag()


class Native(Distribution):
    def has_ext_modules(self):
        return True


setup(
    version=version,
    distclass=Native,
    cmdclass={"build_py": Build, "sdist": Source, "bdist_wheel": Wheel},
    # Where the system has no tools to build with, those of the index are taken.
    setup_requires=[tool for tool, program in {"cmake>=3.25": "cmake", "ninja": "ninja"}.items() if not shutil.which(program)],
    options={"egg_info": {"egg_base": "build"}, "build": {"build_base": "build/wheel"}},
)
