"""Mounts that only a test sees: its function runs in a child with a mount namespace of its own."""

import ctypes
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_CLONE_NEWNS = 0x20000


def mount(kind: str, place: Path, options: str) -> None:
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", kind, "-o", options, kind, str(place)], check=True)


def with_own_mounts(function: Callable[[], Any]) -> Any:
    """Return what `function` returns, by way of JSON, from a child whose mounts nobody else sees.

    Skips the test where that takes more rights than we have.
    """
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(function, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        answer = json.loads(file.read() or b"{}")
    os.waitpid(pid, 0)
    if answer.get("skip"):
        pytest.skip(answer["skip"])
    assert "value" in answer, answer
    return answer["value"]


def _child(function: Callable[[], Any], writer: int) -> None:
    try:
        try:
            answer = _unshared(function)
        except BaseException as error:  # noqa: BLE001  the child's root: told to the test
            answer = {"error": repr(error)}
        os.write(writer, json.dumps(answer).encode())
    finally:
        os._exit(0)


def _unshared(function: Callable[[], Any]) -> dict[str, Any]:
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS) != 0:
        return {"skip": f"unshare: {os.strerror(ctypes.get_errno())}"}
    if subprocess.run(["mount", "--make-rprivate", "/"], check=False).returncode != 0:
        return {"skip": "mounting is not permitted here"}
    return {"value": function()}
