"""One run as its flight recorder and its log tell it: what the host would have said at any moment of it.

A tape is made from a host's answers or read from a file (`replay --export`), and is all that a replay needs. What is
written into a file is scrubbed: same lengths, so that the log's offsets go on meaning what the recorder noted.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from console import protocol
from console.protocol import CudaRecord, Growth, RunRecord
from console.reasons import ConsoleError, Exit, Reason

SCHEMA = 1
_FREE_BYTES = 1 << 30
_ORDER = ("killing", "cache", "spawned")
_TAIL_S = 5.0
_LEAD_S = 1.0
_TICKS_PER_S = 100


class Piece(Struct, frozen=True):
    """A part of the log: bytes from `offset` on, each byte as the character of its number."""

    offset: int
    text: str


class _Rows:
    """Records in the order of their time, found by it."""

    def __init__(self, records: Iterable[Growth]) -> None:
        self.records = sorted(records, key=lambda each: each.bt)
        self._bts = [each.bt for each in self.records]

    def count_at(self, bt: float) -> int:
        return bisect_right(self._bts, bt)

    def at(self, bt: float) -> Growth | None:
        """Return the newest record of this moment."""
        count = self.count_at(bt)
        return self.records[count - 1] if count else None


class _Index:
    """What a tape is asked ten times a second, laid out once: long recordings hold tens of thousands of records."""

    def __init__(self, records: Iterable[Growth]) -> None:
        kinds: dict[str, list[Growth]] = {}
        for each in records:
            if each.k != "log" or each.size is not None:
                kinds.setdefault(each.k, []).append(each)
        self._kinds = {kind: _Rows(found) for kind, found in kinds.items()}
        self._none = _Rows(())
        self._peaks = _peaks(self.of("gpu").records)
        self._named: dict[int, list[tuple[float, tuple[int, int, int, str]]]] = {}
        for each in self.of("who").records:
            for row in each.who:
                self._named.setdefault(row[0], []).append((each.bt, row))

    def of(self, kind: str) -> _Rows:
        return self._kinds.get(kind, self._none)

    def peaks_at(self, bt: float) -> dict[str, int]:
        return dict(self._peaks[self.of("gpu").count_at(bt)])

    def named(self, pid: int, bt: float) -> tuple[int, int, int, str]:
        """Return pid, start, parent and name of who had this pid then: pids are used again."""
        found = self._named.get(pid, [])
        count = bisect_right(found, bt, key=lambda each: each[0])
        return found[count - 1][1] if count else (pid, 0, 0, "")


def _peaks(samples: Iterable[Growth]) -> list[dict[str, int]]:
    """Return the peaks of the run's own GPUs before the first sample, after it, after the second and so on."""
    found: list[dict[str, int]] = [{}]
    for sample in samples:
        higher = {
            str(index): used
            for index, used, *_ in sample.gpus
            if index in sample.held and used is not None and used > found[-1].get(str(index), 0)
        }
        found.append({**found[-1], **higher} if higher else found[-1])
    return found


class Tape(Struct, frozen=True, kw_only=True, dict=True):
    schema: int = SCHEMA
    target: str
    made_at: float
    run: RunRecord
    records: tuple[Growth, ...] = ()
    log: tuple[Piece, ...] = ()
    log_bytes: int = 0
    roles: dict[str, tuple[int, ...]] = {}
    expected: int | None = None
    format: str = "auto"
    tokens_per_step: int | None = None
    label: str = ""

    @cached_property
    def _index(self) -> _Index:
        return _Index(self.records)

    @property
    def begin_bt(self) -> float:
        first = self.run.accepted_bt or (self.records[0].bt if self.records else 0.0)
        return first - _LEAD_S

    @property
    def end_bt(self) -> float:
        ended = self.run.exit.ended_bt if self.run.exit is not None else None
        return max([self.begin_bt + 1.0, *(each.bt for each in self.records[-1:]), ended or 0.0]) + _TAIL_S

    @property
    def wall_offset(self) -> float:
        """The host's wall clock minus its boot time."""
        if self.run.accepted_wall and self.run.accepted_bt:
            return self.run.accepted_wall - self.run.accepted_bt
        return next((each.wall - each.bt for each in self.records if each.wall), 0.0)

    def log_size_at(self, bt: float) -> int:
        """Return how much of the log was there, as the keeper noted it."""
        sizes = self._index.of("log")
        if not sizes.records:
            return self.log_bytes if self.run.spawned_bt is not None and bt >= self.run.spawned_bt else 0
        noted = sizes.at(bt)
        return min(self.log_bytes, noted.size or 0) if noted is not None else 0

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes of the log from `offset` on; fewer where a part is not on the tape."""
        for piece in self.log:
            if piece.offset <= offset < piece.offset + len(piece.text):
                return piece.text[offset - piece.offset : offset - piece.offset + length].encode("latin-1")
        return b""

    def next_offset(self, offset: int) -> int:
        """Return where the log goes on at or after `offset`: further on, where a part is not on the tape."""
        for piece in self.log:
            if offset < piece.offset + len(piece.text):
                return max(offset, piece.offset)
        return self.log_bytes

    # -- what was so at a moment --

    def record_at(self, bt: float) -> RunRecord | None:
        """Return the run's record as it stood; None before it was asked for."""
        run = self.run
        if bt < run.accepted_bt:
            return None
        over = run.exit is not None and run.exit.ended_bt is not None and bt >= run.exit.ended_bt
        stages = {name: seen for name, stage in run.stages.items() if (seen := _stage_at(stage, bt)) is not None}
        spawned = run.spawned_bt is not None and bt >= run.spawned_bt
        failed = any(stage.state == "failed" for stage in stages.values())
        living = not over and not (failed and run.exit is None)
        return replace(
            run,
            state=run.state if over or (failed and run.exit is None) else _state_at(stages, spawned=spawned),
            stages=stages,
            keeper_alive=living,
            main=run.main if spawned else None,
            main_alive=spawned and living if run.main is not None else None,
            alive=spawned and living,
            spawned_bt=run.spawned_bt if spawned else None,
            cuda=self._cuda_at(bt),
            gpu_peak=self._peaks_at(bt),
            exit=run.exit if over else None,
            reason=run.reason if over or failed else None,
            detail=run.detail if over or failed else "",
            stopping=None,
            stopping_text="",
        )

    def _cuda_at(self, bt: float) -> CudaRecord | None:
        cuda = self.run.cuda
        if cuda is None or cuda.first_bt is None or bt < cuda.first_bt:
            return (
                None
                if cuda is None
                else replace(cuda, contexts=(), parts=(), have=None, first_bt=None, complete_bt=None)
            )
        if cuda.complete_bt is not None and bt >= cuda.complete_bt:
            return cuda
        sample = self._index.of("gpu").at(bt)
        held = tuple(sample.held) if sample is not None else ()
        return replace(cuda, contexts=held, parts=(), have=None, complete_bt=None)

    def _peaks_at(self, bt: float) -> dict[str, int]:
        ended = self.run.exit.ended_bt if self.run.exit is not None else None
        if ended is not None and bt >= ended:
            return self.run.gpu_peak
        return self._index.peaks_at(bt)

    def gpus_at(self, bt: float) -> protocol.GpusEvent | None:
        """Return the newest sample of the GPUs; None before the first."""
        sample, kinds = self._index.of("gpu").at(bt), self._index.of("gpukind").at(bt)
        if sample is None:
            return None
        what = {row[0]: row for row in kinds.kinds} if kinds is not None else {}
        gpus = tuple(_gpu(row, what.get(row[0]), sample.held) for row in sample.gpus if row[0] is not None)
        source = (kinds.source if kinds is not None else None) or (self.run.cuda.source if self.run.cuda else "unknown")
        return protocol.GpusEvent(
            bt=sample.bt, source=source, driver=(kinds.driver if kinds is not None else None) or "", gpus=gpus,
            why=(kinds.why if kinds is not None else None) or "", rule=self.run.cuda.rule if self.run.cuda else "",
        )  # fmt: skip

    def procs_at(self, bt: float) -> protocol.ProcsEvent | None:
        """Return the newest sample of the processes."""
        samples = self._index.of("proc")
        count = samples.count_at(bt)
        found = samples.records[max(0, count - 2) : count]
        if not found:
            return None
        before = {row[0]: row[3] for row in found[0].procs} if len(found) == 2 else {}
        elapsed = found[-1].bt - found[0].bt
        procs = []
        for pid, state, rss, ticks in found[-1].procs:
            named = self._index.named(pid, bt)
            busy = (ticks - before[pid]) / _TICKS_PER_S / elapsed * 100 if pid in before and elapsed > 0 else None
            main = self.run.main is not None and pid == self.run.main.pid
            argv = self.run.argv if main else (named[3],)
            procs.append(
                protocol.WireProcess(
                    pid=pid, start=named[1], ppid=named[2], argv=argv, state=state, rss=rss, cpu_pct=busy,
                    age_s=max(0.0, found[-1].bt - named[1] / _TICKS_PER_S) if named[1] else None,
                )
            )  # fmt: skip
        cores = sum(each.cpu_pct or 0.0 for each in procs) / 100 if before else None
        return protocol.ProcsEvent(bt=found[-1].bt, procs=tuple(procs), cpu_cores=cores)


def _stage_at(stage: protocol.HostStage, bt: float) -> protocol.HostStage | None:
    if stage.began_bt is not None and stage.began_bt > bt:
        return None
    if stage.ended_bt is not None and stage.ended_bt > bt:
        return protocol.HostStage(state="active", began_bt=stage.began_bt, began_wall=stage.began_wall)
    return stage


def _state_at(stages: dict[str, protocol.HostStage], *, spawned: bool) -> str:
    last = next((name for name in reversed(_ORDER) if name in stages), None)
    if last is None:
        return "accepted"
    return "running" if last == "spawned" and spawned and stages[last].state == "done" else last


def _gpu(row: list[int | None], kind: list[Any] | None, held: list[int]) -> protocol.WireGpu:
    index, used, util, power, temp, clock, throttle = (*row, *[None] * 7)[:7]
    uuid, name, total, limit, hot_at, ceiling, lost = (*(kind or [index])[1:], *[None] * 7)[:7]
    ours = index in held
    owner = "run" if ours else "unknown" if used is None else "free" if used < _FREE_BYTES else "unknown"
    return protocol.WireGpu(
        i=index or 0, uuid=uuid or "", name=name or "", used=used, total=total, util=util, power_mw=power,
        limit_mw=limit, temp=temp, hot_at=hot_at, sm_mhz=clock, sm_max_mhz=ceiling, throttle=throttle,
        lost=lost or "", context=ours, owner=owner, owner_why="" if ours else "the recorder keeps no owners",
    )  # fmt: skip


# -- files ------------------------------------------------------------------------------------------------------------


def save(tape: Tape, path: Path, secrets: Sequence[str] = ()) -> int:
    """Write a tape into a new file of ours alone, secrets taken out; return its size. Raises: ConsoleError.

    `secrets`: values that must not stand anywhere, the longest first.
    """
    raw = msgspec.json.encode(_scrubbed(tape, secrets)) + b"\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
    except OSError as exc:
        raise ConsoleError(Reason.NOT_SAVED, f"{path}: {exc.strerror}", Exit.USAGE) from exc
    return len(raw)


def load(path: Path) -> Tape:
    """Read a tape. Raises: ConsoleError where it can't be read or is none."""
    try:
        tape = msgspec.json.decode(path.read_bytes(), type=Tape)
    except (OSError, msgspec.MsgspecError) as exc:
        raise ConsoleError(Reason.RUN_UNKNOWN, f"{path} is no recording: {exc}", Exit.USAGE) from exc
    if tape.schema > SCHEMA:
        raise ConsoleError(Reason.RUN_UNKNOWN, f"{path} was written by a newer console", Exit.USAGE)
    return tape


def _scrubbed(tape: Tape, secrets: Sequence[str]) -> Tape:
    """Every word of a tape, wherever it stands: what is added to a record later is scrubbed, too."""
    from console.host import scrub  # its expressions are not needed at every start

    run = tape.run
    env = {name: scrub.scrub(f"{name}={value}", secrets)[len(name) + 1 :] for name, value in run.env.items()}
    plain = msgspec.to_builtins(replace(tape, log=(), run=replace(run, argv=(), env={})))
    clean = msgspec.convert(_walked(plain, lambda text: scrub.scrub(text, secrets)), Tape)
    pieces = tuple(Piece(each.offset, _log_text(each.text, secrets)) for each in tape.log)
    return replace(clean, log=pieces, run=replace(clean.run, argv=scrub.words(run.argv, secrets), env=env))


def _walked(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {key: _walked(each, change) for key, each in value.items()}
        case list() | tuple():
            return [_walked(each, change) for each in value]
    return value


# Of a key that is cut, as many lines as look like one: the words alone must not take the rest of the log along.
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
    r"(?:.{0,16384}?-----END [A-Z ]{0,40}PRIVATE KEY-----|(?:[^\n]{0,200}\n[^\n]{0,80}[A-Za-z0-9+/=]{32,})*)",
    re.S,
)


def _log_text(text: str, secrets: Sequence[str]) -> str:
    """Scrub a log and keep the length of each line."""
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(lambda found: re.sub(r"[^\r\n]", "*", found.group()), text)
    return "\n".join(_same_length(line, secrets) for line in text.split("\n"))


def _same_length(line: str, secrets: Sequence[str]) -> str:
    """Scrub a line of bytes and keep its length."""
    from console.host.scrub import scrub

    readable = line.encode("latin-1", "replace").decode("utf-8", "surrogateescape")
    clean = scrub(readable, secrets)
    if clean == readable:
        return line
    written = clean.encode("utf-8", "surrogateescape").decode("latin-1")
    return written[: len(line)].ljust(len(line), "*")
