"""A real agent as a subprocess, spoken to in its own words; and the Pythons that it has to run on."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from console import protocol
from console.link.payload import build_payload, entry_line
from tests.waiting import PATIENCE_S, until

# The way of the bootstrap, without its nonces: read exactly N bytes from the descriptor, exec them.
_FIRST_LINE = (
    "import os;n={size};d=b''\nwhile len(d)<n:d+=os.read(0,n-len(d))\nexec(compile(d,'payload','exec'),"
    "{{'__name__':'x'}})"
)
_EVENTS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(protocol.AgentEvent)


def awaited(look: Callable[[], Any], timeout_s: float = PATIENCE_S, what: str = "") -> Any:
    """Wait until `look` returns something true, and return that: `until` for what tests look into without ceremony."""
    return until(look, timeout_s, what)


def pythons() -> list[str]:
    """Every Python from 3.8 on that is named in DFLASH_PYTHONS or found as python3.N; at least our own."""
    named = [path for path in os.environ.get("DFLASH_PYTHONS", "").split(":") if path]
    found = [path for minor in range(8, 20) if (path := shutil.which(f"python3.{minor}"))]
    usable = {_version(path): path for path in [sys.executable, *found, *named]}
    return [path for version, path in sorted(usable.items()) if version >= (3, 8)]


@functools.cache
def _version(path: str) -> tuple[int, ...]:
    code = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([path, "-Ic", code], capture_output=True, text=True, timeout=20, check=False)
    return tuple(int(part) for part in done.stdout.split()) if done.returncode == 0 else (0,)


@functools.cache
def payload() -> bytes:
    return entry_line("agent") + build_payload()


class Agent:
    """One agent: `send` operations, `ask` for a reply, look at `events`. Ends with the `with` block."""

    def __init__(self, python: str = sys.executable, env: dict[str, str] | None = None) -> None:
        code = _FIRST_LINE.format(size=len(payload()))
        self.process = subprocess.Popen(
            [python, "-I", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )
        self.events: list[Any] = []
        self.raw: list[bytes] = []
        """What followed each event or reply with `n`, in order."""
        self.replies: dict[int, protocol.Reply] = {}
        self.reply_raw: dict[int, bytes] = {}
        self.hello: protocol.Hello | None = None
        self.broken: list[Exception] = []
        self._ids = 0
        self._reading = threading.Event()
        self._reading.set()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self.write(payload())
        self._reader.start()

    def __enter__(self) -> Agent:
        until(lambda: self.hello is not None or self.process.poll() is not None, 60, "the agent's hello")
        assert self.hello is not None, self.process.stderr and self.process.stderr.read().decode()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._reading.set()
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self._reader.join(20)
            for stream in (self.process.stdout, self.process.stderr):
                if stream is not None:
                    stream.close()
        assert not self.broken, self.broken

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, operation: msgspec.Struct | dict[str, Any]) -> None:
        self.write(msgspec.json.encode(operation) + b"\n")

    def next_id(self) -> int:
        self._ids += 1
        return self._ids

    def ask(self, operation: msgspec.Struct, timeout_s: float = PATIENCE_S) -> protocol.Reply:
        self.send(operation)
        wanted: int = operation.id  # type: ignore[attr-defined]
        reply: protocol.Reply = awaited(lambda: self.replies.get(wanted), timeout_s, f"the reply to {operation}")
        return reply

    def watch(self, spec: protocol.RunSpec, state: Path, interval_s: float = 0.2, lease_s: float = 600.0) -> None:
        operation = protocol.Watch(
            id=self.next_id(), spec=spec, state_dir=str(state), interval_s=interval_s, lease_s=lease_s
        )
        assert self.ask(operation).ok

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in list(self.events) if isinstance(event, kind)]

    def last(self, kind: type[Any]) -> Any:
        found = self.of(kind)
        return found[-1] if found else None

    def state(self) -> protocol.StateEvent | None:
        found: protocol.StateEvent | None = self.last(protocol.StateEvent)
        return found

    def pause_reading(self) -> None:
        """Behave like a console behind a dead link."""
        self._reading.clear()

    def go_on_reading(self) -> None:
        self._reading.set()

    def _read(self) -> None:
        assert self.process.stdout is not None
        stream = self.process.stdout
        try:
            while line := self._line(stream):
                self._take(line, stream)
        except Exception as error:  # noqa: BLE001  # told when the agent is closed
            self.broken.append(error)

    def _line(self, stream: Any) -> bytes:
        self._reading.wait()
        line: bytes = stream.readline()
        return line

    def _take(self, line: bytes, stream: Any) -> None:
        loose = msgspec.json.decode(line)
        raw = stream.read(loose["n"]) if loose.get("n") else b""
        if "ev" in loose:
            self.raw.append(raw)
            self.events.append(_EVENTS.decode(line))
        elif "re" in loose:
            reply = msgspec.json.decode(line, type=protocol.Reply)
            self.reply_raw[reply.re] = raw
            self.replies[reply.re] = reply
        else:
            self.hello = msgspec.json.decode(line, type=protocol.Hello)
