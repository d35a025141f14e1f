"""How our modules come to life on a host where nothing is installed: from memory, out of one streamed text.

The text (a *program*) is `DFLASH_PACK = b'...'` followed by BODY. BODY unpacks the pack (JSON of module name -> source,
zlib, base64), runs this module's source and calls `start`. Which entry runs is told by a global `DFLASH_ENTRY =
("agent", [...])` that stands before the program, else by the command line (`python3 -I start.py keeper RUN_DIR`).

The pack is kept here, so that an agent can write it down once more for a keeper, as two files: a short start.py, and
start.bin beside it with the pack and the modules compiled. Compiling them takes longer than all that a keeper does
before it kills anything (40 ms), reading a megabyte of Python text 10 ms; the sources are unpacked
only where compiled code is missing or a traceback is to be told.
"""

from __future__ import annotations

import binascii
import ctypes
import gc
import importlib
import importlib.machinery
import json
import marshal
import os
import sys
import zlib
from typing import Any, Dict, Optional, Sequence, Tuple, cast

PACKAGE = "dflash_host"

BODY = """
import binascii, json, sys, types, zlib
_sources = json.loads(zlib.decompress(binascii.a2b_base64(DFLASH_PACK)))
_loader = types.ModuleType("dflash_host.loader")
exec(compile(_sources["dflash_host.loader"], "dflash_host/loader.py", "exec"), _loader.__dict__)
_loader.start(_loader, DFLASH_PACK, _sources, globals().get("DFLASH_ENTRY") or (sys.argv[1], sys.argv[2:]))
"""
# Beside it lies start.bin. Code that was compiled by another interpreter is left alone: that one compiles for itself.
_STARTER = """
import marshal, sys, types
with open(sys.argv[0][:-2] + "bin", "rb") as _file:
    DFLASH_PACK, _compiled = marshal.loads(_file.read())
try:
    _version, _codes = marshal.loads(_compiled)
except (ValueError, EOFError, TypeError):
    _version, _codes = "", {}
if _version == sys.implementation.cache_tag + sys.version:
    _loader = types.ModuleType("dflash_host.loader")
    exec(marshal.loads(_codes["dflash_host.loader"]), _loader.__dict__)
    _loader.start(_loader, DFLASH_PACK, {}, (sys.argv[1], sys.argv[2:]), _codes)
"""

pack: bytes = b""
"""The pack that this process was started from; empty where the modules came from files."""
compiled: bytes = b""
"""Version and code of every module, marshalled, once `keep_compiled` was told."""
importer: Optional[MemoryImporter] = None


class MemoryImporter:
    """Finds and loads the modules of the pack; they shadow what the host may have under the same names.

    Without the base classes of importlib.abc, whose import takes 20 ms.
    """

    def __init__(self, sources: Dict[str, str], codes: Optional[Dict[str, bytes]] = None) -> None:
        self._names = frozenset(sources) | frozenset(codes or ())
        self._sources: Optional[Dict[str, str]] = sources
        self._codes = codes or {}

    def let_go(self) -> None:
        """Keep no text of what is loaded: what is asked for later comes out of the pack once more."""
        if self._sources is not None:
            self._sources.clear()  # its maker has it, too
        self._sources = None
        self._codes = {name: code for name, code in self._codes.items() if name not in sys.modules}

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname not in self._names:
            return None
        return importlib.machinery.ModuleSpec(
            fullname, cast(Any, self), origin=_file_name(fullname), is_package=self.is_package(fullname)
        )

    def is_package(self, fullname: str) -> bool:
        return fullname == PACKAGE

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None  # an ordinary one

    def exec_module(self, module: Any) -> None:
        exec(self.get_code(module.__name__), module.__dict__)  # noqa: S102  that is what importing is

    def get_source(self, fullname: str) -> str:
        return (self._sources or sources_of(pack))[fullname]

    def get_code(self, fullname: str) -> Any:
        if fullname in self._codes:
            return marshal.loads(self._codes[fullname])
        return _compile(fullname, self.get_source(fullname))


def compile_all() -> str:
    """Return every module of the pack compiled, for `keep_compiled`. Takes 0.1 s: to be asked for in a child."""
    codes = {name: marshal.dumps(_compile(name, source)) for name, source in sources_of(pack).items()}
    return binascii.b2a_base64(zlib.compress(marshal.dumps((_version(), codes)), 1), newline=False).decode("ascii")


def keep_compiled(text: str) -> None:
    """Take what `compile_all` returned in a child: `program` then carries it. What can't be read is left out."""
    global compiled
    try:
        compiled = zlib.decompress(binascii.a2b_base64(text))
    except (ValueError, zlib.error):
        compiled = b""


def _compile(name: str, source: str) -> Any:
    return compile(source, _file_name(name), "exec", dont_inherit=True)


def _version() -> str:
    """What compiled code is valid for: another interpreter compiles for itself."""
    return str(sys.implementation.cache_tag) + sys.version


def program() -> Tuple[bytes, bytes]:
    """Return what start.py and start.bin must hold to start the same modules again under another entry.

    Raises: RuntimeError where this process was not started from a pack.
    """
    if not pack:
        raise RuntimeError("not started from a pack")
    otherwise = "".join("    %s\n" % line for line in BODY.strip().splitlines())
    return ("%selse:\n%s" % (_STARTER, otherwise)).encode("ascii"), marshal.dumps((pack, compiled))


def sources_of(packed: bytes) -> Dict[str, str]:
    """Return the text of every module by its name. Takes some 5 ms."""
    found: Dict[str, str] = json.loads(zlib.decompress(binascii.a2b_base64(packed)))
    return found


def assemble(packed: bytes) -> bytes:
    return b"DFLASH_PACK = b'" + packed + b"'\n" + BODY.encode("ascii")


def start(
    this: Any,
    packed: bytes,
    sources: Dict[str, str],
    entry: Sequence[Any],
    codes: Optional[Dict[str, bytes]] = None,
) -> None:
    """Make the modules importable and run `entry`: (module, arguments). Never returns.

    Of `sources` and `codes` one holds all modules. Leaves by os._exit, since under `python3 -i` a SystemExit would only
    lead back to the prompt.
    """
    this.importer = MemoryImporter(sources, codes)
    sys.meta_path.insert(0, this.importer)
    this.__spec__ = this.importer.find_spec(this.__name__)
    this.__package__ = PACKAGE
    this.pack = packed
    sys.modules[this.__name__] = this
    status = 1
    try:
        name, arguments = entry
        module = importlib.import_module(f"{PACKAGE}.{name}")
        status = int(module.main(*arguments) or 0)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001  # the root of the process: stderr is all that is left to tell it
        _tell()
    finally:
        os._exit(status)


def settle() -> None:
    """Hand to the kernel what unpacking and compiling took: this process lives for days, with the rest of it.

    To be called by an entry that has imported what it needs; takes some 5 ms.
    """
    if importer is not None:
        importer.let_go()
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        pass  # a libc without it


def _tell() -> None:
    import linecache  # these cost 10 ms of a start that mostly has nothing to tell
    import traceback

    for name, source in sources_of(pack).items():
        linecache.cache[_file_name(name)] = (len(source), None, source.splitlines(True), _file_name(name))
    try:
        traceback.print_exc()
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def _file_name(module: str) -> str:
    return module.replace(".", "/") + ("/__init__.py" if module == PACKAGE else ".py")
