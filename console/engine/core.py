"""The engine: one target's link, state and log joined, and the only place that knows both link and state.

It turns what the link says into events, carries the machine's effects out, and hands out snapshots. Faces read
`snapshot`, `log` and `series`, and call `plan`, `execute` and `retry_link`; they never see a connection.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar, assert_never

import msgspec

from console import protocol
from console.config import Target
from console.engine import diagnosis, gpucurves, requests
from console.engine.archive import Archive
from console.engine.following import Following
from console.engine.growth import GrowthIndex
from console.engine.logreader import LogReader
from console.engine.oldlogs import OldLogs
from console.engine.outside import OutsideAsking
from console.engine.past import Past
from console.engine.pastsource import PastSource, past_source
from console.engine.replay import Replay, record
from console.engine.tape import Tape
from console.engine.unwatched import Unwatched
from console.link.events import AgentSaid, BulkDown, BulkUp, LinkDown, LinkEvent, LinkUp, OutsideDown, OutsideUp, Rtt
from console.link.link import Link
from console.link.payload import program
from console.link.tasks import owned_tasks, started
from console.model import Accepted, Diagnosis, LinkState, Overrides, PastRun, Plan, Snapshot
from console.reasons import ConsoleError, Exit, Reason, link_exit_code, reason_of
from console.state import events, machine
from console.state.gpuview import KeptPanel
from console.state.logbuffer import LogBuffer
from console.state.series import Series
from console.state.snapshot import snapshot as build_snapshot
from console.state.target import is_this_boot

_log = logging.getLogger(__name__)
T = TypeVar("T")

_QUIET_S = 0.25  # snapshots are announced at most this often, unless a stage, a number's sanity or the link has changed
_FRESH_S = 0.05
_KEY_S = 0.06  # a dialog is there after a third of it, where nothing else goes on
_PLAN_TIMEOUT_S = 45.0  # the module check alone may take 20 s on a cold disk
_DIAGNOSE_TIMEOUT_S = 130.0  # the agent gives itself 120 s
_EXECUTE_TIMEOUT_S = 30.0  # the agent itself waits 5 s for the keeper, 25 s for one that lives on a busy host
_RESEND_WITHIN_S = 40.0
_RESEND_PAUSE_S = 0.1
_REPLAN_WITHIN_S = 20.0
_RECORDER_TIMEOUT_S = 15.0


class Engine:
    """One target, watched and acted on."""

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
        self._old_logs = OldLogs(self.logs, self._past.book, name, target.metrics)
        self._unwatched = Unwatched(self.logs, self._past.book, name, target, self._notes)
        self.archive = Archive(self._past, name, lambda: self.snapshot, self._old_logs, self._unwatched, self._records)
        """The runs of before, and what is kept of this one."""
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

    # -- what faces read ----------------------------------------------------------------------------------------------

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

    @property
    def declared_env(self) -> Mapping[str, str]:
        """The environment that the config adds to a login shell's."""
        return self.target.env

    def redeclare(self, env: Mapping[str, str], arguments: tuple[str, ...]) -> None:
        """The config gives runs this environment from now on, and its command these further arguments."""
        command = (*self.target.command, *arguments)
        self.target = msgspec.structs.replace(self.target, env=dict(env), command=command)

    def choose_baseline(self, tok_s: float | None, name: str) -> None:
        """Compare with this rate from now on, in this console alone."""
        self._past.compare_with_nothing()
        self._feed(events.BaselineChosen(at=self.now(), tok_s=tok_s, name=name))

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
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                continue

    def last_lines(self, count: int) -> list[str]:
        """Return the newest lines of the log, the console's own marks left out."""
        return self._following.last_lines(count)

    @property
    def can_look(self) -> bool:
        """Whether `logs` has a connection to look through."""
        return self._link.has_bulk

    def dated(self, text: str) -> float | None:
        """Return when a line says that it was written, by this clock; None where it doesn't say."""
        return self._following.dated(text)

    async def noted_size_at(self, run: str, at: float, size_bytes: int) -> int | None:
        """Return how large the log of a run was at a moment, by its keeper's notes; None where they don't reach there.

        `size_bytes` is its size now: what was written after the last note was written nobody knows when.
        """
        record = next((each for each in self._records() if each.id == run), None)
        bt, now_bt = self._state.clock.bt(at), self._state.clock.bt(self.now())
        if record is None or bt is None or now_bt is None or not is_this_boot(self._state, record):
            return None
        growth = GrowthIndex(await self._recorded(run))
        return growth.size_at(bt) if growth.reaches(bt, size_bytes, now_bt) else None

    def first_error(self) -> tuple[int, int, str] | None:
        """Return (line number from 1, byte offset, text) of the first error line since the last step."""
        return self._following.first_error()

    # -- what faces ask for -------------------------------------------------------------------------------------------

    def attend(self) -> None:
        """A key was pressed: its answer comes before the log."""
        self._following.pause(_KEY_S)

    def retry_link(self) -> None:
        """Try to connect now, and ask for the log now, instead of when the backoff ends."""
        self._link.retry_now()
        self._following.retry_now()

    async def plan(self, action: str, overrides: Overrides | None = None) -> Plan:
        """Return what `restart` or `stop` would do. Touches nothing, so a link that breaks meanwhile is waited for.

        Raises: ConsoleError.
        """
        self._require_link()
        deadline = asyncio.get_running_loop().time() + _REPLAN_WITHIN_S
        while True:
            try:
                return await self._plan(action, overrides or Overrides())
            except ConsoleError as error:
                if error.exit_code not in (Exit.LINK, Exit.ENTRY) or not await self._link_again(deadline):
                    raise

    async def _plan(self, action: str, overrides: Overrides) -> Plan:
        spec = requests.run_spec(self.name, self.target, overrides)
        await self._past.ready()
        good = self._past.outlook.newest
        operation = protocol.MakePlan(
            id=self._link.next_id(),
            action=action,
            spec=spec,
            compare_to=good.id if good is not None else None,
            state_dir=self.target.state_dir,
        )
        wire = requests.checked(await self._link.request(operation, timeout_s=_PLAN_TIMEOUT_S), protocol.WirePlan)
        plan = requests.plan_from_wire(wire, self.name, self.target, overrides, self.snapshot)
        plan = msgspec.structs.replace(plan, since_stepped=good is not None and wire.since_id == good.id)
        return self._past.with_times(plan, overrides, has_gpus=self.target.gpus.expected != 0)

    async def diagnose(self, path: Path | None = None) -> Diagnosis:
        """Save what the run that is there can tell into a new file on this machine. Nothing of the run is touched.

        Raises: ConsoleError; NOTHING_RUNS where no process is left to be looked at, NOT_SAVED.
        """
        self._require_link()
        spec = requests.run_spec(self.name, self.target, Overrides())
        operation = protocol.Diagnose(id=self._link.next_id(), spec=spec, state_dir=self.target.state_dir)
        reply, seen = await self._link.raw_request(operation, timeout_s=_DIAGNOSE_TIMEOUT_S)
        requests.checked(reply, dict)
        return await asyncio.to_thread(diagnosis.save, self.snapshot, seen, path)

    async def past_run(self, run: str) -> PastRun:
        """Return a run of before with its settings, by its id or its name.

        Raises: ConsoleError(RUN_UNKNOWN, LEDGER_UNUSABLE).
        """
        return await self._past.find(run)

    async def view(self, run_id: str) -> PastSource:
        """Return a run of before as it was at its end, with its log as far as the host still has it.

        Raises: ConsoleError(RUN_UNKNOWN, LEDGER_UNUSABLE).
        """
        return await past_source(self, run_id, self._state.host.runs, self._recorded)

    def _records(self) -> list[protocol.RunRecord]:
        """Return the records of the runs that the host tells of, the one that is spoken of first."""
        said = self._state.host.said
        return [*([said.run] if said is not None and said.run is not None else []), *self._state.host.runs]

    async def _recorded(self, run: str) -> list[protocol.Growth]:
        """Return what the run's keeper noted; nothing where the host can't say."""
        try:
            return await self._notes(run)
        except ConsoleError as error:
            _log.info("nothing of the flight recorder: %s", error)
            return []

    async def _notes(self, run: str) -> list[protocol.Growth]:
        """Do as `_recorded`. Raises: ConsoleError."""
        reply, _ = await self._link.bulk_request(self._ask_recorder(run), timeout_s=_RECORDER_TIMEOUT_S)
        return requests.decode_records(requests.checked(reply, dict), protocol.Growth)

    async def execute(self, plan: Plan, overrides: Overrides | None = None) -> Accepted:
        """Hand a plan to a keeper on the host; returns when it is taken.

        A link that breaks meanwhile is waited for and the request sent again: its id makes that harmless.
        Raises: ConsoleError; READ_ONLY without asking anybody.
        """
        if self.read_only:
            raise ConsoleError(Reason.READ_ONLY, "this console only watches", Exit.REFUSED)
        overrides = overrides or Overrides()
        request = f"r-{secrets.token_hex(4)}"
        deadline = asyncio.get_running_loop().time() + _RESEND_WITHIN_S
        self._require_link()
        while True:
            operation = self._execute_operation(request, plan, overrides)
            try:
                reply = await self._link.request(operation, timeout_s=_EXECUTE_TIMEOUT_S)
                return requests.accepted(requests.checked(reply, protocol.Taken), plan.action)
            except ConsoleError as error:
                if error.exit_code not in (Exit.LINK, Exit.ENTRY):
                    raise
                if not await self._link_again(deadline):
                    detail = f"{error.detail}; whether request {request} was taken is not known"
                    raise ConsoleError(error.reason, detail, error.exit_code, tail=error.tail) from error

    async def _link_again(self, deadline: float) -> bool:
        """Wait for the link after a request over it has failed; False past the deadline.

        Never returns at once: a link whose agent has just died still counts as up until it is taken down.
        """
        await asyncio.sleep(_RESEND_PAUSE_S)
        if asyncio.get_running_loop().time() > deadline:
            return False
        back = await self.until(lambda now: now if now.link.state is LinkState.UP else None, deadline)
        return back is not None

    def _execute_operation(self, request: str, plan: Plan, overrides: Overrides) -> protocol.Execute:
        spec = requests.run_spec(self.name, self.target, overrides)
        return protocol.Execute(
            id=self._link.next_id(),
            request=request,
            action=plan.action,
            spec=spec,
            name=plan.name,
            log_path=plan.log_path,
            replaces=tuple(protocol.ProcId(pid=each.pid, start=each.start_ticks) for each in plan.replaces),
            replaced_id=plan.replaced_id,
            operator=self.operator,
            origin=self.origin,
            note=overrides.note,
            state_dir=self.target.state_dir,
        )

    def _require_link(self) -> None:
        link = self.snapshot.link
        if link.state is not LinkState.UP:
            detail = link.detail or link.reason or str(link.state)
            raise ConsoleError(Reason.NO_LINK, detail, link_exit_code(reason_of(link.reason)))

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
        self._old_logs.utc_offset_s = self._unwatched.utc_offset_s = hello.utc_offset_s
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

    async def tape_of(self, run: str) -> Tape:
        """Return everything that the host has on record of a run, by its id or its name.

        Raises: ConsoleError(RUN_UNKNOWN).
        """
        found = next((each for each in self._records() if run in (each.id, each.name)), None)
        if found is None:
            raise ConsoleError(Reason.RUN_UNKNOWN, f"{run}: no such run of {self.name} on the host", Exit.REFUSED)
        return await record(self._link, self.name, self.target, found, self.now())

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
        urgent = isinstance(event, (events.HostSaid, events.LinkWentUp, events.LinkWentDown))
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
