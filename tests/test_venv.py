"""What `make` says on a machine that lacks what the console needs: one sentence, and what to do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parent.parent / "scripts" / "venv"


def _python(path: Path, body: str) -> Path:
    """Write a program that stands in for a Python."""
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)
    return path


def _set_up(folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", str(_SCRIPT), str(folder / "made")],
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return _python(tmp_path / "python3", "[[ $1 == -V ]] && echo Python 3.9.2 && exit; exit 1")


def test_python_that_was_named_and_is_too_old_is_told(old: Path, tmp_path: Path) -> None:
    done = _set_up(tmp_path, PYTHON=str(old))

    assert (done.returncode, done.stderr) == (1, f"setup: PYTHON={old} is not a Python 3.11 or newer\n")
    assert not (tmp_path / "made").exists()


def test_machine_without_a_new_enough_python_is_told_what_it_has(old: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("dirname", "grep", "sort"):
        (tools / name).symlink_to(next(Path(at) / name for at in ("/usr/bin", "/bin") if (Path(at) / name).exists()))

    done = _set_up(tmp_path, PATH=f"{old.parent}:{tools}")

    assert done.returncode == 1
    assert "no Python 3.11 or newer on PATH (python3 is Python 3.9.2)" in done.stderr
    assert "make PYTHON=" in done.stderr


def test_python_without_its_venv_module_is_told_with_the_package(tmp_path: Path) -> None:
    bare = _python(
        tmp_path / "python3.12",
        "case $2 in *ensurepip*) exit 1 ;; *print*) echo 3.12 ;; esac",
    )

    done = _set_up(tmp_path, PYTHON=str(bare))

    assert done.returncode == 1
    assert f"{bare} has no venv module; on Debian and Ubuntu: apt-get install python3.12-venv" in done.stderr
