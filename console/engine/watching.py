"""One target watched: its link, its state and its log joined, and the only place that knows both link and state.

It turns what the link says into events, carries the machine's effects out, and hands out snapshots. Nothing in here
changes anything on the host; what an operator asks for is in `core`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar, assert_never

from console import protocol
from console.config import Target
from console.engine import gpucurves, requests
from console.engine.following import Following
from console.engine.logreader import LogReader
from console.engine.outside import OutsideAsking
from console.engine.past import Past
from console.engine.replay import Replay
from console.link.events import AgentSaid, BulkDown, BulkUp, LinkDown, LinkEvent, LinkUp, OutsideDown, OutsideUp, Rtt
from console.link.link import Link
from console.link.payload import program
from console.link.tasks import owned_tasks, started
from console.model import Overrides, Snapshot
from console.reasons import ConsoleError, Exit
from console.state import events, machine
from console.state.gpuview import KeptPanel
from console.state.logbuffer import LogBuffer
from console.state.series import Series
from console.state.snapshot import snapshot as build_snapshot

T = TypeVar("T")

_QUIET_S = 0.25  # snapshots are announced at most this often, unless a stage, a number's sanity or the link has changed
_FRESH_S = 0.05


class Watching:
    """Everything that is heard of a target, as long as `run` runs."""

    def __init__(
        self,
        name: str,
        target: Target,
        *,
        operator: str,
        origin: str,
        read_only: bool = False,
        tape: Replay | None = None,
        ledger: Path | None = None,
    ) -> None:
        """`tape`: what is played back in place of a host; the engine then goes by its clock and keeps no ledger.

        `ledger`: the file to keep it in, where that isn't the user's own.
        """
        self.name, self.target = name, target
        self.playback = tape
        self.operator, self.origin, self.read_only = operator, origin, read_only
        self.on_change: list[Callable[[], None]] = []
        self.on_lines: list[Callable[[], None]] = []
        self.log = LogBuffer()
        self.series: dict[str, Series] = {}
        self.hello: protocol.Hello | None = None
        self.has_word = False
        self.past_logs: dict[str, str] = {}
        """Logs of the runs that the host still tells of, by id and by name; of runs of one name the newest's."""
        self.past_runs: dict[str, str] = {}
        """Id and name of the runs before the one that the snapshot shows, as far as the host still tells of them, the
        oldest first."""
        self._clock_base = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        self._link: Link | Replay = tape or Link(
            name,
            target,
            payload=partial(program, "agent"),
            on_event=self._on_link,
            outside=partial(program, "outside") if target.wants_host_helper else None,
        )
        if tape is not None:
            tape.attach(self._on_link, self._rewind)
        self._state = machine.start(name, target, operator=operator, read_only=read_only, label=self._link.label)
        self._following = Following(
            self._link,
            target.metrics,
            self.log,
            self.series,
            self._feed,
            self.now,
            self._ask_recorder,
            self._tell_lines,
        )
        self._outside = OutsideAsking(self._link)
        self.logs = LogReader(self._link, target.log or "", self.now)
        baseline = target.metrics.baseline if isinstance(target.metrics.baseline, str) else None
        self._past = Past(
            name, clears_cache=bool(target.caches), baseline=baseline, feed=self._feed, now=self.now, path=ledger
        )
        self._snapshot: Snapshot | None = None
        self._kept_gpus = KeptPanel()
        self._changed = asyncio.Event()
        self._announce: asyncio.TimerHandle | None = None
        self._told_at = 0.0  # by the loop's clock
        self._tasks: asyncio.TaskGroup | None = None
        self._bug: Exception | None = None
        self._broken = asyncio.Event()
        self.bells: list[events.RingBell] = []
        """Failures that happened while we watched; the face that rings takes them out."""

    # -- what is known ------------------------------------------------------------------------------------------------

    def now(self) -> float:
        """Return Unix seconds that never jump: the wall clock at the start plus boot time since."""
        if self.playback is not None:
            return self.playback.now()
        return self._clock_base + time.clock_gettime(time.CLOCK_BOOTTIME)

    @property
    def snapshot(self) -> Snapshot:
        """What is known now, with ages as of now."""
        if self._snapshot is None or self.now() - self._snapshot.at > _FRESH_S:
            self._snapshot = build_snapshot(self._state, self.now(), self._kept_gpus)
        return self._snapshot

    async def until(self, predicate: Callable[[Snapshot], T | None], deadline: float | None) -> T | None:
        """Return the predicate's first result that isn't None, or None when the loop's time passes `deadline`.

        Raises: the bug that ended the engine, if one has: nothing would ever change any more.
        """
        loop = asyncio.get_running_loop()
        while True:
            self._changed.clear()
            found = predicate(self.snapshot)
            if found is not None:
                return found
            if self._bug is not None:
                raise self._bug
            left = 1.0 if deadline is None else min(1.0, deadline - loop.time())
            if left <= 0:
                return None
            try:
                # Not wait_for: before Python 3.12 it drops a cancel that comes in the same turn as what it awaits.
                async with asyncio.timeout(left):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def last_lines(self, count: int) -> list[str]:
        """Return the newest lines of the log, the console's own marks left out."""
        return self._following.end.last_lines(count)

    @property
    def can_look(self) -> bool:
        """Whether `logs` has a connection to look through."""
        return self._link.has_bulk

    def dated(self, text: str) -> float | None:
        """Return when a line says that it was written, by this clock; None where it doesn't say."""
        return self._following.dated(text)

    def first_error(self) -> tuple[int, int, str] | None:
        """Return (line number from 1, byte offset, text) of the first error line since the last step."""
        return self._following.end.first_error()

    # -- life ---------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch until cancelled.

        Raises: the first bug, wherever it was: in a task, a timer's callback or a listener.
        """
        try:
            async with owned_tasks() as tasks:
                self._tasks = self._following.tasks = self._past.tasks = tasks
                tasks.create_task(self._link.run(), name="link")
                tasks.create_task(self._tick(), name="tick")
                await self._raise_bug()
        except Exception as bug:
            self._break(bug)
            raise
        finally:
            self._tasks = self._following.tasks = self._past.tasks = None
            if self._announce is not None:
                self._announce.cancel()
            if self._bug is None:
                self._remember(is_last=True)
            await self._past.close()

    def _break(self, bug: Exception) -> None:
        """End the engine with this bug: one in a callback would only be logged, and the console go on half-dead."""
        if self._bug is None:
            self._bug = bug
            self._broken.set()
            self._changed.set()

    async def _raise_bug(self) -> None:
        await self._broken.wait()
        if self._bug is not None:
            raise self._bug

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self._feed(events.Tick(at=self.now()))
            self._following.tick()
            self._outside.tick()
            self._remember()

    def _remember(self, *, is_last: bool = False) -> None:
        """Have the ledger take down what is proven of the run; before that there is nothing that the host can't say."""
        launch = self._state.launch
        if launch is not None and (launch.stepped or launch.over is not None):
            self._past.watched(self.snapshot, is_last=is_last)

    # -- from the link ------------------------------------------------------------------------------------------------

    def _on_link(self, event: LinkEvent) -> None:
        try:
            self._heard(event, self.now())
        except ConsoleError:
            raise  # the link takes itself down over it
        except Exception as bug:  # noqa: BLE001 - some events come out of callbacks: it is raised where it ends the engine
            self._break(bug)

    def _heard(self, event: LinkEvent, now: float) -> None:
        match event:
            case LinkUp():
                self._came_up(event, now)
            case LinkDown():
                self._following.bulk_down()  # the link says nothing more of it
                if not event.held:
                    self._outside.went_down()
                retry_at = now + event.retry_in_s if event.retry_in_s is not None else None
                self._feed(
                    events.LinkWentDown(
                        at=now,
                        reason=str(event.reason),
                        detail=event.detail,
                        attempt=event.attempt,
                        retry_at=retry_at,
                        held=event.held,
                    )
                )
            case Rtt():
                self._following.set_clock(now - event.rtt_s / 2 - event.bt)
                self._feed(events.LinkRtt(at=now, rtt_s=event.rtt_s, bt=event.bt, wall=event.wall))
            case BulkUp():
                self._following.bulk_up()
            case BulkDown():
                self._following.bulk_down()
                self._feed(events.BulkWentDown(at=now, detail=event.detail))
            case OutsideUp():
                self._outside.came_up(self.hello)
            case OutsideDown():
                self._outside.went_down()
                self._feed(events.OutsideLost(at=now, detail=event.detail))
            case AgentSaid():
                self._agent_said(event, now)
            case _:
                assert_never(event)

    def _came_up(self, event: LinkUp, now: float) -> None:
        hello = self.hello = event.hello
        self._following.set_clock(now - hello.bt)
        self._following.set_zone(hello.utc_offset_s, now - hello.wall)
        started(self._tasks, self._watch(), "watch")  # before anybody is told, and asks for something else first
        self._feed(
            events.LinkWentUp(
                at=now,
                bt=hello.bt,
                wall=hello.wall,
                boot=hello.boot,
                booted_wall=hello.booted_wall,
                rtt_s=event.rtt_s,
                label=self._link.label,
            )
        )
        if self.playback is None:
            self._past.reached(f"{hello.node}:{self.target.state_dir or hello.state_dir}")

    async def _watch(self) -> None:
        """Tell the fresh agent what to watch."""
        spec = requests.run_spec(self.name, self.target, Overrides())
        operation = protocol.Watch(id=self._link.next_id(), spec=spec, state_dir=self.target.state_dir)
        try:
            requests.checked(await self._link.request(operation, timeout_s=10.0), dict)
        except ConsoleError as error:
            if error.exit_code in (Exit.LINK, Exit.ENTRY):
                return  # the link says it itself, and a new one watches again
            warn = protocol.Warn(bt=0.0, reason=str(error.reason), detail=error.detail)
            self._feed(events.HostWarned(at=self.now(), warn=warn))

    def _agent_said(self, said: AgentSaid, now: float) -> None:
        event = said.event
        match event:
            case protocol.StateEvent():
                self.has_word = True
                older = event.last[::-1]
                self.past_runs |= {record.id: record.name for record in older}
                for record in (*older, event.run) if event.run is not None else older:
                    if record.log is not None:
                        self.past_logs |= dict.fromkeys((record.id, record.name), record.log.path)
                self._feed(events.HostSaid(at=now, state=event))
                subject = self._state.subject
                self._following.host_said(subject.record if subject is not None else None)
                self._past.host_said(event, self._state.subject.key if self._state.subject is not None else None)
            case protocol.ProcsEvent():
                self._feed(events.ProcsSaid(at=now, procs=event))
                self._outside.procs_said(event)
            case protocol.GpusEvent():
                self._feed(events.GpusSaid(at=now, gpus=event))
                self._outside.gpus_said(event)
                gpucurves.take(self.series, event, now)
                self._past.gpus(event, self.target.gpus.roles)
            case protocol.LogEvent():
                self._following.take(event, said.data, now)
            case protocol.OutsideEvent():
                self._feed(events.OutsideSaid(at=now, outside=event))
            case protocol.Warn():
                self._feed(events.HostWarned(at=now, warn=event))
            case _:
                assert_never(event)

    def _rewind(self) -> None:
        """Forget everything: the tape goes on from another place."""
        self._state = machine.start(
            self.name, self.target, operator=self.operator, read_only=self.read_only, label=self._link.label
        )
        self._following.bulk_down()
        self.series.clear()
        self.log.clear()
        self.bells.clear()
        self._snapshot = None

    def _ask_recorder(self, run: str) -> protocol.Recorder:
        return requests.recorder(self._link.next_id(), self.name, self.target, run)

    # -- the machine --------------------------------------------------------------------------------------------------

    def _feed(self, event: events.Event) -> None:
        before, sane = self._state.launch, self._state.training.loss_state
        is_timed = isinstance(event, events.SamplesSeen) and (event.dated or not self._state.log.is_catching_up)
        self._state, effects = machine.step(self._state, event)
        if isinstance(event, events.SamplesSeen) and is_timed:
            self._past.samples(event, self._state.training)
        if self._state.launch is not before:
            self._snapshot = None
            self._remember()
        for effect in effects:
            self._carry_out(effect)
        is_news = self._state.launch is not before or self._state.training.loss_state != sane
        urgent = isinstance(event, (events.HostSaid, events.LinkWentUp, events.LinkWentDown, events.HistoryRead))
        self._announce_change(at_once=urgent or is_news or bool(effects))

    def _carry_out(self, effect: events.Effect) -> None:
        match effect:
            case events.FollowLog():
                self._following.follow(effect)
            case events.StopFollowing():
                self._following.stop(effect)
            case events.ReadHead():
                self._following.read_head(effect)
            case events.RingBell():
                self.bells.append(effect)
            case _:
                assert_never(effect)

    def _announce_change(self, *, at_once: bool) -> None:
        self._snapshot = None
        if at_once:
            if self._announce is not None:
                self._announce.cancel()
            self._tell()
        elif self._announce is None:
            loop = asyncio.get_running_loop()
            self._announce = loop.call_at(max(loop.time(), self._told_at + _QUIET_S), self._tell)

    def _tell(self) -> None:
        self._announce = None
        self._told_at = asyncio.get_running_loop().time()
        self._changed.set()
        self._call(self.on_change)

    def _tell_lines(self) -> None:
        self._call(self.on_lines)

    def _call(self, listeners: list[Callable[[], None]]) -> None:
        try:
            for listener in list(listeners):
                listener()
        except Exception as bug:  # noqa: BLE001 - mostly called by a timer: see _break
            self._break(bug)
