"""The engine: one target watched, and what an operator asks of it: plans, restarts, what a run can tell, past runs.

Faces read what `Watching` knows (`snapshot`, `log`, `series`) and call `plan`, `execute` and `retry_link`; they never
see a connection.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec

from console import protocol
from console.config import Target
from console.engine import diagnosis, requests
from console.engine.archive import Archive
from console.engine.growth import GrowthIndex
from console.engine.oldlogs import OldLogs
from console.engine.pastsource import PastSource, past_source
from console.engine.replay import Replay, record
from console.engine.tape import Tape
from console.engine.unknown import unknown_run
from console.engine.unwatched import Unwatched
from console.engine.watching import Watching
from console.link.events import LinkUp
from console.model import Accepted, Diagnosis, LinkState, Overrides, PastRun, Plan
from console.reasons import ConsoleError, Exit, Reason, link_exit_code, reason_of
from console.state import events
from console.state.baseline import Baseline
from console.state.target import is_this_boot

_log = logging.getLogger(__name__)

_KEY_S = 0.06  # a dialog is there after a third of it, where nothing else goes on
_PLAN_TIMEOUT_S = 45.0  # the module check alone may take 20 s on a cold disk
_DIAGNOSE_TIMEOUT_S = 130.0  # the agent gives itself 120 s
_EXECUTE_TIMEOUT_S = 30.0  # the agent itself waits 10 s for the keeper, 25 s for one that lives on a busy host
_RESEND_WITHIN_S = 40.0
_RESEND_PAUSE_S = 0.1
_REPLAN_WITHIN_S = 20.0
_RECORDER_TIMEOUT_S = 15.0


class Engine(Watching):
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
        """As `Watching`, which says what is what."""
        super().__init__(name, target, operator=operator, origin=origin, read_only=read_only, tape=tape, ledger=ledger)
        self._old_logs = OldLogs(self.logs, self._past.book, name, target.metrics)
        self._unwatched = Unwatched(self.logs, self._past.book, name, target, self._notes)
        self.archive = Archive(self._past, name, lambda: self.snapshot, self._old_logs, self._unwatched, self._records)
        """The runs of before, and what is kept of this one."""

    def _came_up(self, event: LinkUp, now: float) -> None:
        self._old_logs.utc_offset_s = self._unwatched.utc_offset_s = event.hello.utc_offset_s
        super()._came_up(event, now)

    # -- what this console is told ------------------------------------------------------------------------------------

    @property
    def declared_env(self) -> Mapping[str, str]:
        """The environment that the config adds to a login shell's."""
        return self.target.env

    def redeclare(self, env: Mapping[str, str], arguments: tuple[str, ...]) -> None:
        """The config gives runs this environment from now on, and its command these further arguments."""
        command = (*self.target.command, *arguments)
        self.target = msgspec.structs.replace(self.target, env=dict(env), command=command)

    def choose_baseline(self, tok_s: float | None, name: str, scope: str | None = None) -> None:
        """Compare with this rate from now on, in this console alone; `scope` as the log of a past run states it."""
        self._past.compare_with_nothing()
        self._feed(events.BaselineChosen(at=self.now(), baseline=Baseline(tok_s=tok_s, name=name, scope=scope)))

    def attend(self) -> None:
        """A key was pressed: its answer comes before the log."""
        self._following.pause(_KEY_S)

    def retry_link(self) -> None:
        """Try to connect now, and ask for the log now, instead of when the backoff ends."""
        self._link.retry_now()
        self._following.retry_now()

    # -- restarting and stopping --------------------------------------------------------------------------------------

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

    async def _link_again(self, deadline: float) -> bool:
        """Wait for the link after a request over it has failed; False past the deadline.

        Never returns at once: a link whose agent has just died still counts as up until it is taken down.
        """
        await asyncio.sleep(_RESEND_PAUSE_S)
        if asyncio.get_running_loop().time() > deadline:
            return False
        back = await self.until(lambda now: now if now.link.state is LinkState.UP else None, deadline)
        return back is not None

    # -- what a run can tell ------------------------------------------------------------------------------------------

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

    async def tape_of(self, run: str) -> Tape:
        """Return everything that the host has on record of a run, by its id or its name.

        Raises: ConsoleError(RUN_UNKNOWN).
        """
        found = next((each for each in self._records() if run in (each.id, each.name)), None)
        if found is None:
            known = (word for each in self._records() for word in (each.name, each.id))
            raise unknown_run(run, f"{self.name} on the host", known)
        return await record(self._link, self.name, self.target, found, self.now())

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

    @property
    def records(self) -> list[protocol.RunRecord]:
        """The runs that the host tells of, stops among them; the one that is spoken of first."""
        return self._records()

    def record_of(self, run_id: str) -> protocol.RunRecord | None:
        """Return what the host has on record of a run; None where it tells of it no more."""
        return next((each for each in self._records() if each.id == run_id), None)

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
