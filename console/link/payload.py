"""The one text that is streamed to a host: all of console.host and what it uses of pynvml, ready to run.

Wire form: the bootstrap sends `program("agent")`, an entry line and the payload, as the N bytes that the host's Python
reads from its stdin and execs. The entry line sets the global `DFLASH_ENTRY = ("agent", [...])`; console/host/loader.py
says what the text then does. The agent's first line on stdout is the Hello object; stdin after the N bytes carries
operations.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import zlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from console.host import loader
from console.link.slim import only_what_is_used


@cache
def build_payload() -> bytes:
    """Return the program text; ASCII, the same bytes for the same sources. Costs about 0.05 s the first time.

    Raises: ModuleNotFoundError where our dependency nvidia-ml-py is not installed.
    """
    # 7 takes 8 ms more than 6 for half a percent of the wire, 9 twice as long for half a percent more.
    packed = zlib.compress(json.dumps(_sources(), sort_keys=True).encode("ascii"), 7)
    return loader.assemble(base64.b64encode(packed))


def program(entry: str) -> bytes:
    """Return what the host's Python execs, entry line and all."""
    return entry_line(entry) + build_payload()


def entry_line(entry: str, *args: str) -> bytes:
    """Return the line that stands before the program and says what to run: `entry_line("agent")`."""
    return f"DFLASH_ENTRY = {(entry, [*args])!a}\n".encode("ascii")


def _sources() -> dict[str, str]:
    found = {}
    for entry in files("console.host").iterdir():
        if entry.name.endswith(".py"):
            module = entry.name.removesuffix(".py")
            name = loader.PACKAGE if module == "__init__" else f"{loader.PACKAGE}.{module}"
            found[name] = without_remarks(entry.read_text("utf-8"))
    found["pynvml"] = _binding([source for source in found.values() if "pynvml" in source])
    return found


def _binding(users: list[str]) -> str:
    """Return pynvml with what its `users` use: a tenth of it, and of what compiling it costs on the host.

    Its own exceptions are made of whatever is called NVML_ERROR_.
    """
    return only_what_is_used(without_remarks(_source_of("pynvml")), users, always="NVML_ERROR_")


def without_remarks(source: str) -> str:
    """Return a module with its remarks emptied but for the first ones, which say whose it is; lines keep their numbers.

    A twentieth of what our modules take on the wire.
    """
    lines = source.splitlines(keepends=True)
    head = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "".join(lines[:head] + ["\n" if line.lstrip().startswith("#") else line for line in lines[head:]])


def _source_of(module: str) -> str:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(module, name=module)
    return Path(spec.origin).read_text("utf-8")
