"""What the screens need from an engine, as a protocol: the screens import neither engine nor link.

The engine fulfils it; tests and the preview use a fake. Log and series are the state's own read-only views.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from console.config import Target
from console.history.entry import Entry, Runs
from console.history.samples import Curves
from console.model import Accepted, Diagnosis, Overrides, PastRun, Plan, Snapshot
from console.state.events import RingBell
from console.state.logbuffer import LogBuffer
from console.state.logquery import Counted, LogFile, Place, Query
from console.state.series import Series
from console.state.stretch import Stretch


class LogSource(Protocol):
    """Looks into any part of a log on the host. Every method raises `ConsoleError`; each look is short."""

    async def lines(
        self, place: Place, offset: int, length: int, *, back: bool = ..., align: bool = ...
    ) -> Stretch: ...

    async def matching(
        self, place: Place, query: Query, offset: int, *, back: bool = ..., limit: int = ..., length: int = ...
    ) -> Stretch: ...

    async def count(self, place: Place, query: Query, offset: int) -> Counted: ...

    async def files(self) -> tuple[LogFile, ...]: ...

    async def raw(self, place: Place, offset: int, length: int) -> bytes: ...


class Archive(Protocol):
    """The runs of before, and what is kept of this one. Every method raises `ConsoleError`."""

    async def runs(self, limit: int = ..., since: int = ...) -> Runs:
        """Return the newest runs, newest first."""
        ...

    async def run(self, which: str) -> tuple[Entry, Curves]:
        """Return the newest run of this id or name with its curves."""
        ...

    async def annotate(self, run_id: str, text: str) -> None: ...


class Playback(Protocol):
    """A recording that is played in place of a host. Times are seconds from its start."""

    speed: float
    is_paused: bool

    @property
    def position_s(self) -> float: ...

    @property
    def length_s(self) -> float: ...

    @property
    def marks(self) -> Sequence[tuple[float, str]]:
        """Where stages began, and the end."""
        ...

    def toggle(self) -> None: ...

    def step(self, seconds: float) -> None: ...

    def faster(self, by: int) -> None: ...

    def to_mark(self, direction: int) -> None: ...


class Source(Protocol):
    """One target as the screens see it. Every method raises `ConsoleError`, none blocks."""

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot; its ages are of the moment of asking."""
        ...

    @property
    def on_change(self) -> list[Callable[[], None]]:
        """Called in the event loop when something changed: four times a second at most, at once for stages and link."""
        ...

    @property
    def on_lines(self) -> list[Callable[[], None]]:
        """Called in the event loop whenever the log buffer has changed, before anybody knows what its lines mean."""
        ...

    @property
    def log(self) -> LogBuffer: ...

    @property
    def logs(self) -> LogSource:
        """What the buffer doesn't hold: the rest of the log, and other logs."""
        ...

    @property
    def playback(self) -> Playback | None:
        """Of a replay; None where a host is watched."""
        ...

    @property
    def series(self) -> Mapping[str, Series]:
        """`tok_s`, `loss`, `queue`; by GPU `gpu_memory:<index>` (bytes), `gpu_power:` (W), `gpu_busy:` (%)."""
        ...

    @property
    def bells(self) -> list[RingBell]:
        """Failures that are news, one entry each; whoever rings empties it."""
        ...

    @property
    def target(self) -> Target:
        """What the config or the flags say of the target."""
        ...

    @property
    def archive(self) -> Archive: ...

    @property
    def declared_env(self) -> Mapping[str, str]:
        """The environment that the config gives a run: what the edit dialog starts from."""
        ...

    def redeclare(self, env: Mapping[str, str], arguments: tuple[str, ...]) -> None:
        """The config gives runs this environment from now on, and its command these further arguments."""
        ...

    def choose_baseline(self, tok_s: float | None, name: str, scope: str | None = ...) -> None:
        """Compare with this rate from now on, in this console alone; None compares with nothing.

        `scope`: whose tokens it counts, as the log of its run states it; None of a number that somebody gives.
        """
        ...

    async def view(self, run_id: str) -> PastView:
        """Return a run of before as it was at its end."""
        ...

    async def plan(self, action: str, overrides: Overrides = ...) -> Plan: ...

    async def execute(self, plan: Plan, overrides: Overrides = ...) -> Accepted: ...

    async def diagnose(self) -> Diagnosis:
        """Save what the run can tell into a new file on this machine."""
        ...

    def attend(self) -> None:
        """A key was pressed: its answer comes before anything else."""
        ...

    def retry_link(self) -> None: ...


class PastView(Source, Protocol):
    """A run of before, shown in place of the live one: nothing of it changes any more."""

    @property
    def settings(self) -> PastRun | None:
        """What it was started with; None where nobody knows."""
        ...

    @property
    def entry(self) -> Entry: ...
