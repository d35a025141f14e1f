"""How the agent gets into a bare Python at the end of any line of words, over its stdin.

The remote line is `PREFIX... python3 -Iqi`: without a quote it means the same to every shell. Then, each step only
after the answer to the one before:

1. the probe, an exec line that prints a nonce, version and missing modules. It is harmless and may be sent again: a
   `.bashrc` that reads stdin can eat it. The nonce is put together by Python, so that an echo of the line isn't one.
2. the loader, an exec line that prints a second nonce and then reads exactly N bytes. They are sent only then, since an
   interactive Python reads ahead while it looks for its next line.
3. the payload; its first line on stdout is the Hello object.

Banners and other noise before the nonces are passed over, with a bound.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from console.link import entry
from console.link.killtest import host_answers
from console.link.streams import LineStream, Tail
from console.link.transport import Connection, Ended, Process
from console.protocol import PROTOCOL_VERSION, Hello
from console.reasons import ConsoleError, Exit, Reason

RESEND_S = 1.5
"""The probe is sent again after this, while nothing has come back."""
ANSWER_S = 10.0
HELLO_S = 10.0
NOISE_BYTES = 1 << 20

_MODULE_NAMES = """
binascii collections ctypes errno fcntl fnmatch functools gc glob importlib.util json linecache marshal math mmap os
platform pwd re resource select shlex shutil signal socket stat string struct subprocess tempfile threading time
traceback types typing zlib
"""
MODULES = tuple(_MODULE_NAMES.split())
"""What the host side imports; a Python without one of them is called incomplete before anything is sent to it.

The agent keeps what the probe has loaded: nothing that it does not need (hashlib alone is 3.7 MB) may stand here.
"""

# Both lines run under any Python 3 (and 2.7, to be told that it's too old), hold no newline, and stay far below the
# 4,096 bytes of a terminal's line buffer.
_PROBE = (
    "import os,sys\nm=[]\nfor n in '{modules}'.split():\n try:__import__(n)\n except Exception:m.append(n)\n"
    "v=tuple(sys.version_info[:3])+(os.isatty(0),','.join(m))\n"
    "os.write(1,('\\n'+'{half}'+'{other}'+' %d.%d.%d %d %s\\n'%v).encode())"
)
_LOADER = (
    "import os,sys,traceback\nos.write(1,('\\n'+'{half}'+'{other}'+'\\n').encode())\nd=bytearray()\n"
    "while len(d)<{size}:\n c=os.read(0,{size}-len(d))\n if not c:os._exit(69)\n d+=c\n"
    "try:d=compile(bytes(d),'dflash-console','exec');exec(d,{{'__name__':'__main__'}})\n"
    "except BaseException:\n traceback.print_exc()\n sys.stderr.flush()\n os._exit(70)\nos._exit(0)"
)
_ANSWER = re.compile(rb" (\d+)\.(\d+)\.(\d+) (\d) (\S*)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """An agent that has said hello."""

    hello: Hello
    rtt_s: float
    """Round trip of the loader line and its answer."""


class Bootstrap:
    """One attempt to start the agent through an open process.

    `on_held` is told once when the attempt hangs although the host itself answers: a frozen container. The attempt then
    stays open and goes on when the container does, because every one that is given up leaves a process behind that
    can't even be killed.
    """

    def __init__(
        self,
        connection: Connection,
        process: Process,
        stream: LineStream,
        tail: Tail,
        *,
        prefix: Sequence[str],
        python: str,
        on_held: Callable[[ConsoleError], None],
    ) -> None:
        self._connection, self._process, self._stream, self._tail = connection, process, stream, tail
        self._prefix, self._python, self._on_held = prefix, python, on_held

    async def start(self, payload: bytes) -> Started:
        """Raises: ConsoleError with Exit.ENTRY, or link_lost with Exit.LINK."""
        await self._probe()
        rtt_s = await self._load(payload)
        async with self._limit(HELLO_S, "the agent said no hello"):
            hello = await self._hello()
        return Started(hello=hello, rtt_s=rtt_s)

    async def _probe(self) -> None:
        nonce = _Nonce()
        line = _exec_line(_PROBE.format(modules=" ".join(MODULES), half=nonce.half, other=nonce.other))
        answer = asyncio.ensure_future(self._stream.line_after(nonce.whole, NOISE_BYTES))
        try:
            await self._ask(line, answer)
            found = await answer
        finally:
            answer.cancel()
        if found is None:
            printed = [*self._stream.passed_over(), *await self._tail.whole()]
            raise entry.never_answered(await self._ended(), printed, self._prefix, self._python)
        self._judge(found)

    async def _ask(self, line: bytes, answer: asyncio.Future[bytes | None]) -> None:
        """Send the probe until it is answered; the last one waits for as long as a frozen container stays so."""
        deadline = time.monotonic() + ANSWER_S
        while not answer.done() and time.monotonic() < deadline:
            self._process.write(line)
            await asyncio.wait([answer], timeout=min(RESEND_S, max(0.0, deadline - time.monotonic())))
        if answer.done():
            return
        words = " ".join([*self._prefix, self._python])
        if self._prefix and await host_answers(self._connection):
            detail = f"{words} hangs while the host itself answers; the attempt stays open"
            self._on_held(ConsoleError(Reason.CONTAINER_FROZEN, detail, Exit.ENTRY))
            await asyncio.wait([answer])
            return
        raise self._failed(f"{words} did not answer within {ANSWER_S:g} s")

    def _judge(self, found: bytes) -> None:
        match = _ANSWER.fullmatch(found)
        if match is None:
            raise self._failed(f"an answer that makes no sense: {found[:80]!r}")
        version = tuple(int(part) for part in match.groups()[:3])
        missing = [name for name in match[5].decode("ascii", "replace").split(",") if name]
        if unfit := entry.unfit_python(self._python, version, missing):
            raise unfit
        if match[4] != b"0":
            raise self._failed("stdin is a terminal there, which would garble what is sent")

    async def _load(self, payload: bytes) -> float:
        nonce = _Nonce()
        line = _exec_line(_LOADER.format(size=len(payload), half=nonce.half, other=nonce.other))
        began = time.monotonic()
        self._process.write(line)
        async with self._limit(ANSWER_S, "the loader did not answer"):
            if await self._stream.line_after(nonce.whole, NOISE_BYTES) is None:
                raise entry.broke_down(await self._ended(), await self._tail.whole())
        rtt_s = time.monotonic() - began
        self._process.write(payload)
        return rtt_s

    async def _hello(self) -> Hello:
        line = await self._stream.line()
        if line is None:
            raise entry.broke_down(await self._ended(), await self._tail.whole())
        try:
            hello = msgspec.json.decode(line, type=Hello)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise ConsoleError(Reason.PROTOCOL, f"not a hello: {line[:80]!r}", Exit.ENTRY) from exc
        if hello.v != PROTOCOL_VERSION:
            raise ConsoleError(Reason.PROTOCOL, f"the agent speaks version {hello.v}", Exit.ENTRY)
        return hello

    async def _ended(self) -> Ended:
        try:
            async with asyncio.timeout(1.0):
                return await self._process.wait()
        except TimeoutError:
            return Ended()

    def _failed(self, detail: str) -> ConsoleError:
        tail = (*self._stream.passed_over(), *self._tail.lines())
        return ConsoleError(Reason.BOOTSTRAP_FAILED, detail, Exit.ENTRY, tail=tail[-entry.TAIL_LINES :])

    def _limit(self, seconds: float, what: str) -> _Limit:
        return _Limit(seconds, lambda: self._failed(f"{what} within {seconds:g} s"))


class _Limit:
    """`asyncio.timeout` that raises an error of the catalogue."""

    def __init__(self, seconds: float, error: Callable[[], ConsoleError]) -> None:
        self._timeout, self._error = asyncio.timeout(seconds), error

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, *exc_info: object) -> None:
        try:
            await self._timeout.__aexit__(*exc_info)  # type: ignore[arg-type]
        except TimeoutError as exc:
            raise self._error() from exc


class _Nonce:
    def __init__(self) -> None:
        token = secrets.token_hex(12)
        self.half, self.other = token[:12], token[12:]
        self.whole = token.encode("ascii")


def _exec_line(source: str) -> bytes:
    """One line for the interactive prompt. `repr` of ASCII text is a literal that holds no newline."""
    return f"exec({source!r})\n".encode("ascii")
