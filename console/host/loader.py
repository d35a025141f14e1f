"""How our modules come to life on a host where nothing is installed: from memory, out of one streamed text.

The text (a *program*) is `DFLASH_PACK = b'...'` followed by BODY. BODY unpacks the pack (JSON of module name -> source,
zlib, base64), runs this module's source and calls `start`. Which entry runs is told by a global `DFLASH_ENTRY =
("agent", [...])` that stands before the program, else by the command line (`python3 -I start.py keeper RUN_DIR`).
The same program is kept here, so that an agent can write it down once more for a keeper.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import linecache
import os
import sys
import traceback
from typing import Any, Dict, Optional, Sequence

PACKAGE = "dflash_host"

BODY = """
import binascii, json, sys, types, zlib
_sources = json.loads(zlib.decompress(binascii.a2b_base64(DFLASH_PACK)))
_loader = types.ModuleType("dflash_host.loader")
exec(compile(_sources["dflash_host.loader"], "dflash_host/loader.py", "exec"), _loader.__dict__)
_loader.start(_loader, DFLASH_PACK, _sources, globals().get("DFLASH_ENTRY") or (sys.argv[1], sys.argv[2:]))
"""

pack: bytes = b""
"""The pack that this process was started from; empty where the modules came from files."""


class MemoryImporter(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds and loads the modules of the pack; they shadow what the host may have under the same names."""

    def __init__(self, sources: Dict[str, str]) -> None:
        self._sources = sources

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname not in self._sources:
            return None
        return importlib.machinery.ModuleSpec(
            fullname, self, origin=_file_name(fullname), is_package=self.is_package(fullname)
        )

    def is_package(self, fullname: str) -> bool:
        return fullname == PACKAGE

    def get_source(self, fullname: str) -> str:
        return self._sources[fullname]

    def get_code(self, fullname: str) -> Any:
        return compile(self._sources[fullname], _file_name(fullname), "exec", dont_inherit=True)


def program() -> bytes:
    """Return the text that starts the same modules again under another entry.

    Raises: RuntimeError where this process was not started from a pack.
    """
    if not pack:
        raise RuntimeError("not started from a pack")
    return assemble(pack)


def assemble(packed: bytes) -> bytes:
    return b"DFLASH_PACK = b'" + packed + b"'\n" + BODY.encode("ascii")


def start(this: Any, packed: bytes, sources: Dict[str, str], entry: Sequence[Any]) -> None:
    """Make the modules importable and run `entry`: (module, arguments). Never returns.

    Leaves by os._exit, since under `python3 -i` a SystemExit would only lead back to the prompt.
    """
    importer = MemoryImporter(sources)
    sys.meta_path.insert(0, importer)
    this.__spec__ = importer.find_spec(this.__name__)
    this.__package__ = PACKAGE
    this.pack = packed
    sys.modules[this.__name__] = this
    code = 1
    try:
        name, arguments = entry
        module = importlib.import_module(f"{PACKAGE}.{name}")
        code = int(module.main(*arguments) or 0)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001  # the root of the process: stderr is all that is left to tell it
        _tell(sources)
    finally:
        os._exit(code)


def _tell(sources: Dict[str, str]) -> None:
    for name, source in sources.items():
        linecache.cache[_file_name(name)] = (len(source), None, source.splitlines(True), _file_name(name))
    try:
        traceback.print_exc()
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def _file_name(module: str) -> str:
    return module.replace(".", "/") + ("/__init__.py" if module == PACKAGE else ".py")
