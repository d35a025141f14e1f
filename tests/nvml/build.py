"""Build the NVML test library: `build(directory)`, or `python -m tests.nvml.build DIRECTORY` by hand."""

import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("fake_nvml.c")
NAME = "libnvidia-ml.so.1"
_FLAGS = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden"]


def compiler() -> str | None:
    """Return the C compiler of this machine, or None."""
    return shutil.which("gcc") or shutil.which("cc")


def build(directory: Path) -> Path:
    """Compile the library into `directory` and return its path; put the directory on LD_LIBRARY_PATH to use it.

    Raises: FileNotFoundError without a compiler; CalledProcessError where it refuses the source.
    """
    found = compiler()
    if found is None:
        raise FileNotFoundError("no C compiler (gcc)")
    directory.mkdir(parents=True, exist_ok=True)
    library = directory / NAME
    subprocess.run([found, *_FLAGS, f"-Wl,-soname,{NAME}", "-o", str(library), str(SOURCE)], check=True, timeout=60)
    return library


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
