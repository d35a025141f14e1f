"""request.json as the keeper reads it, and the FIFO by which a running keeper is asked to stop.

The agent writes request.json (protocol.Execute plus acceptance times, boot and expiry) into a run directory that it
made exclusively, and one JSON line into `control`. Keeper and agent may import this module.
"""

from __future__ import annotations

import json
import os
import stat
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import files

NAME = "request.json"
CONTROL = "control"
CLAIM = "taken"
"""Made by the one keeper that carries the request out: who comes second ends."""
WITHDRAWN_BT = 0.0
"""As the time of expiry: nobody waits for it any more."""
_MAX_LINE_BYTES = 4096  # PIPE_BUF: a line is written whole or not at all

Ident = Tuple[int, int]


class Request(NamedTuple):
    """What the keeper was asked to do, and where it keeps its files."""

    run_dir: str
    run: str
    action: str
    spec: Dict[str, Any]
    name: str
    log_path: str
    replaces: List[Ident]
    replaced_id: Optional[str]
    operator: str
    origin: str
    note: str
    accepted_wall: float
    accepted_bt: float
    expires_bt: float
    boot: str
    gpu_sample: Optional[Dict[str, Any]] = None
    """The agent's newest one."""
    cache_sizes: Optional[Dict[str, Tuple[int, bool]]] = None
    """Bytes by path as the plan has counted them, and whether that was not all."""

    @property
    def target_dir(self) -> str:
        return os.path.dirname(os.path.dirname(self.run_dir))

    @property
    def state_dir(self) -> str:
        return os.path.dirname(os.path.dirname(self.target_dir))

    def other_run_dir(self, run: str) -> str:
        return os.path.join(os.path.dirname(self.run_dir), files.safe_name(run))


def read(run_dir: str) -> Request:
    """Raises: ValueError naming what is missing."""
    raw = files.read_json(run_dir, NAME)
    if raw is None:
        raise ValueError("%s can't be read" % os.path.join(run_dir, NAME))
    try:
        return Request(
            run_dir=run_dir,
            run=raw["request"],
            action=raw["action"],
            spec=raw["spec"],
            name=raw["name"],
            log_path=raw["log_path"],
            replaces=[(entry["pid"], entry["start"]) for entry in raw["replaces"]],
            replaced_id=raw.get("replaced_id"),
            operator=raw["operator"],
            origin=raw["origin"],
            note=raw.get("note") or "",
            accepted_wall=raw["accepted_wall"],
            accepted_bt=raw["accepted_bt"],
            expires_bt=raw["expires_bt"],
            boot=raw["boot"],
            gpu_sample=raw.get("gpu_sample"),
            cache_sizes={path: (size, partial) for path, (size, partial) in (raw.get("cache_sizes") or {}).items()},
        )
    except (KeyError, TypeError) as error:
        raise ValueError("%s lacks %s" % (os.path.join(run_dir, NAME), error)) from error


def is_withdrawn(asked: Request) -> bool:
    """Whether the agent has given this request up since it was read."""
    raw = files.read_json(asked.run_dir, NAME)
    return raw is not None and raw.get("expires_bt") == WITHDRAWN_BT


def scrub(asked: Request, env: Dict[str, str]) -> None:
    """Rewrite request.json with its secret-looking values hashed: they have served their purpose."""
    raw = files.read_json(asked.run_dir, NAME)
    if raw is not None:
        raw["spec"]["env"] = env
        raw.pop("gpu_sample", None)  # of no use to anybody later
        files.write_json(asked.run_dir, NAME, raw)
        # The plain text is still in the spare that was swapped out.
        files.drop_spare(asked.run_dir, NAME)


def send_stop(
    run_dir: str, operator: str, origin: str, request: str, signal_name: str = "TERM", grace_s: float = 20.0
) -> bool:
    """Ask the keeper of `run_dir` to end its run; False where no keeper listens. Doing it twice does no harm."""
    line = {
        "op": "stop",
        "operator": operator,
        "origin": origin,
        "request": request,
        "signal": signal_name,
        "grace_s": grace_s,
    }
    raw = json.dumps(line).encode("utf-8", "surrogateescape") + b"\n"
    if len(raw) > _MAX_LINE_BYTES:
        raise ValueError("the stop line is longer than %d bytes" % _MAX_LINE_BYTES)
    try:
        # ENXIO without a reader: a FIFO that only the dead would read.
        descriptor = os.open(os.path.join(run_dir, CONTROL), os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return False
        return os.write(descriptor, raw) == len(raw)
    except OSError:
        return False
    finally:
        os.close(descriptor)


class Control:
    """The keeper's end of the FIFO."""

    def __init__(self, run_dir: str) -> None:
        path = os.path.join(run_dir, CONTROL)
        if not os.path.lexists(path):
            os.mkfifo(path, 0o600)
        # Read and write: with a writer of our own it never reports end-of-file and never spins.
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._buffer = b""

    def fileno(self) -> int:
        return self._descriptor

    def lines(self) -> List[Dict[str, Any]]:
        """Return what was asked since the last call; what isn't a JSON object is dropped."""
        while True:
            try:
                part = os.read(self._descriptor, 65536)
            except BlockingIOError:
                break
            if not part:
                break
            self._buffer = (self._buffer + part)[-65536:]
        *whole, self._buffer = self._buffer.split(b"\n")
        return [line for line in map(_as_object, whole) if line is not None]


def _as_object(raw: bytes) -> Optional[Dict[str, Any]]:
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None
