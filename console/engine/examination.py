"""What `doctor` looks at, one thing after the other, from the jump host to the plan: findings with stable ids.

Each look is bounded in time. After a failure nothing further can be known: the rest is told as not known, never as ok.
Restarts nothing and starts nothing but shells that end at once and an agent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from console import formatfile, protocol
from console.config import Target
from console.engine import helpercheck, requests
from console.link import entry
from console.link.agents import Agent, closing, open_agent
from console.link.killtest import Tried, try_kill
from console.link.payload import build_payload, entry_line
from console.link.ssh import Reached, connect_ssh
from console.link.transport import Connection, LocalConnection
from console.model import Overrides
from console.reasons import ConsoleError, Exit, Reason, reason_of
from console.state.lines import LineSplitter
from console.state.metrics import Parser

IDS = (
    "ssh.jump",
    "ssh.host",
    "exec.enter",
    "host.python",
    "host.killuser",
    "host.systemd",
    "gpu.nvml",
    "gpu.foreign",
    "state.dir",
    "host.helper",
    "log.format",
    "plan.preflight",
)

AGENT_S = 30.0
HOST_S = 50.0
PLAN_S = 65.0
LOG_S = 15.0
LOG_BYTES = 512 << 10
LOG_LINES = 3000
_NO_WAY_IN = {
    Reason.WRAPPER_MISSING,
    Reason.CONTAINER_MISSING,
    Reason.CONTAINER_STOPPED,
    Reason.CONTAINER_FROZEN,
}
_TOLD_ALREADY = {"gpus", "gpu_memory_foreign", "state_dir", "survives_logout"}
"""Checks of the plan that have a line of their own here."""
_STATES = {"ok": "ok", "warn": "warn", "refuse": "fail"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the doctor."""

    id: str
    state: str | None
    """`ok`, `warn` or `fail`; None where it isn't known, and `detail` says why."""
    detail: str
    reason: Reason | None = None
    next: str = ""
    """What to do, where the reason's own advice is too general."""
    exit_code: Exit = Exit.OK
    """What a failure is worth."""
    took_s: float = 0.0


class Examination:
    """The findings so far; each is told as soon as it is there."""

    def __init__(self, name: str, target: Target, tell: Callable[[Finding], None]) -> None:
        self.name, self.target = name, target
        self.findings: list[Finding] = []
        self._tell = tell
        self._since = time.monotonic()
        self._ended_at = ""
        """What failed so that nothing after it can be known."""

    async def run(self) -> None:
        """Look at everything."""
        try:
            async with closing(await self._connect()) as connection:
                await self._enter(connection)
        except ConsoleError as error:
            if not self._ended_at:
                self._failed(next(each for each in IDS if not self._is_known(each)), error)
        for each in IDS:
            if not self._is_known(each):
                self._add(each, None, f"not looked at, since {self._ended_at} failed")

    # -- what is found ------------------------------------------------------------------------------------------------

    def _add(
        self,
        check: str,
        state: str | None,
        detail: str,
        *,
        reason: Reason | None = None,
        next_: str = "",
        code: Exit = Exit.OK,
        took_s: float | None = None,
    ) -> None:
        now = time.monotonic()
        took_s = now - self._since if took_s is None else took_s
        self._since = now
        finding = Finding(
            id=check, state=state, detail=detail, reason=reason, next=next_, exit_code=code, took_s=took_s
        )
        self.findings.append(finding)
        self._tell(finding)

    def _failed(self, check: str, error: ConsoleError) -> None:
        self._ended_at = check
        self._add(check, "fail", error.detail or str(error.reason), reason=error.reason, code=error.exit_code)

    def _is_known(self, check: str) -> bool:
        return any(finding.id == check for finding in self.findings)

    @contextmanager
    def _blamed_on(self, check: str) -> Iterator[None]:
        """Tell an error out of the block as the failure of `check`."""
        try:
            yield
        except ConsoleError as error:
            self._failed(check, error)
            raise

    # -- the way ------------------------------------------------------------------------------------------------------

    async def _connect(self) -> Connection:
        if self.target.host == "local":
            self._add("ssh.jump", "ok", "none: the target is this machine")
            self._add("ssh.host", "ok", "this machine, without SSH")
            return LocalConnection()
        reached: list[Reached] = []
        try:
            connection = await connect_ssh(self.target, reached.append)
        except ConsoleError as error:
            if not error.data.get("is_jump"):
                self._tell_jumps(reached)
            self._failed("ssh.jump" if error.data.get("is_jump") else "ssh.host", error)
            raise
        self._tell_jumps(reached)
        self._add("ssh.host", "ok", _hop_words(reached[-1]), took_s=reached[-1].connect_s + reached[-1].login_s)
        return connection

    def _tell_jumps(self, reached: list[Reached]) -> None:
        jumps = [hop for hop in reached if hop.is_jump]
        took_s = sum(hop.connect_s + hop.login_s for hop in jumps)
        self._add("ssh.jump", "ok", "; ".join(map(_hop_words, jumps)) or "none is configured", took_s=took_s)

    async def _enter(self, connection: Connection) -> None:
        with self._blamed_on("exec.enter"):
            tried = await try_kill(connection, self.target.exec)
        held: asyncio.Future[ConsoleError] = asyncio.get_running_loop().create_future()

        def hold(error: ConsoleError) -> None:
            if not held.done():
                held.set_result(error)

        payload = entry_line("agent") + build_payload()
        try:
            async with asyncio.timeout(AGENT_S) as limit:
                async with open_agent(
                    connection, self.target, payload, on_event=lambda event, data: None, on_held=hold
                ) as agent:
                    limit.reschedule(None)
                    self._tell_entry(tried)
                    await self._inside(connection, agent)
        except TimeoutError as exc:
            error = held.result() if held.done() else _slow_agent()
            raise self._no_agent(error, tried) from exc
        except ConsoleError as error:
            if self._is_known("exec.enter"):
                raise
            raise self._no_agent(error, tried) from error

    def _tell_entry(self, tried: Tried) -> None:
        words = _entry_words(self.target)
        if tried.is_told:
            self._add("exec.enter", "ok", f"{words}, returns exit codes (killed child -> 137)")
            return
        said = f", saying {tried.printed[-1]!r}" if tried.printed else ""
        told = f"{words}, but a shell that was killed came back as: {tried.ended}{said}"
        self._add("exec.enter", "warn", told, next_="trust no exit status of that wrapper; the console doesn't")

    def _no_agent(self, error: ConsoleError, tried: Tried) -> ConsoleError:
        """Tell why no agent answered: the way in or the Python behind it, by what either attempt printed."""
        if error.reason is Reason.BOOTSTRAP_FAILED and self.target.exec and not tried.is_told:
            judged = entry.never_answered(tried.ended, tried.printed, self.target.exec, self.target.python)
            error = judged if judged.reason in _NO_WAY_IN else error
        if error.reason in _NO_WAY_IN:
            self._failed("exec.enter", error)
        else:
            self._tell_entry(tried)
            self._failed("host.python", error)
        return error

    # -- inside -------------------------------------------------------------------------------------------------------

    async def _inside(self, connection: Connection, agent: Agent) -> None:
        spec = requests.run_spec(self.name, self.target, Overrides())
        state_dir = self.target.state_dir
        with self._blamed_on("host.python"):
            watch = protocol.Watch(id=1, spec=spec, state_dir=state_dir, interval_s=60.0, lease_s=HOST_S + PLAN_S)
            await agent.channel.request(watch, timeout_s=LOG_S)
            reply, _ = await agent.channel.request(
                protocol.Examine(id=2, spec=spec, state_dir=state_dir), timeout_s=HOST_S
            )
            examined = requests.checked(reply, protocol.WireExamination)
        for each in examined.findings:
            state = _STATES.get(each.state)
            reason = reason_of(each.reason) if each.reason else None
            code = Exit.REFUSED if state == "fail" else Exit.OK
            self._add(each.id, state, each.detail, reason=reason, next_=each.next, code=code, took_s=each.took_s)
        self._since = time.monotonic()
        helper = await helpercheck.look(connection, self.target, agent.started.hello)
        self._add("host.helper", helper.state, helper.detail, reason=helper.reason, next_=helper.next)
        await self._log(agent, examined.log)
        await self._plan(agent, spec)

    async def _log(self, agent: Agent, path: str | None) -> None:
        if path is None:
            self._add("log.format", None, f"there is no log yet ({self.target.log or 'no `log` is configured'})")
            return
        try:
            reply, _ = await agent.channel.request(
                protocol.LogRead(id=3, path=path, offset=0, length=0), timeout_s=LOG_S
            )
            size = int(reply.data.get("size", 0))
            offset = max(0, size - LOG_BYTES)
            _, data = await agent.channel.request(
                protocol.LogRead(id=4, path=path, offset=offset, length=LOG_BYTES), timeout_s=LOG_S
            )
        except ConsoleError as error:
            if error.exit_code in (Exit.LINK, Exit.ENTRY):
                self._failed("log.format", error)
                raise
            self._add("log.format", "warn", error.detail, reason=error.reason)
            return
        state, told, reason = understood(self.target, data, offset, path)
        self._add("log.format", state, told, reason=reason)

    async def _plan(self, agent: Agent, spec: protocol.RunSpec) -> None:
        with self._blamed_on("plan.preflight"):
            operation = protocol.MakePlan(id=5, action="restart", spec=spec)
            reply, _ = await agent.channel.request(operation, timeout_s=PLAN_S)
            checks = requests.checked(reply, protocol.WirePlan).checks
        refused = [check for check in checks if check.state == "refuse"]
        warned = [check for check in checks if check.state == "warn" and check.id not in _TOLD_ALREADY]
        told = f"{len(checks) - len(refused)} of {len(checks)} checks would pass"
        worst = [*refused, *warned]
        if not worst:
            self._add("plan.preflight", "ok", told)
            return
        detail = "; ".join([told, *(f"{check.id}: {check.detail}" for check in worst)])
        reason = reason_of(worst[0].reason) if worst[0].reason else None
        state, code = ("fail", Exit.REFUSED) if refused else ("warn", Exit.OK)
        self._add("plan.preflight", state, detail, reason=reason, code=code)


def understood(target: Target, data: bytes, offset: int, path: str) -> tuple[str | None, str, Reason | None]:
    """Return state, sentence and reason: how much of a log's end, which begins at `offset`, can be read."""
    splitter = LineSplitter(offset, mid_line=offset > 0)
    lines = [line for line in splitter.feed(data, offset, 0.0) if not line.frame][-LOG_LINES:]
    parser = Parser(formatfile.resolve(target.metrics.format), target.metrics.tokens_per_step)
    for line in lines:
        parser.feed(line, live=False)
    found = parser.understood
    if not found.lines:
        return None, f"{path} holds no whole line yet", None
    told = f"{found.matched:,} of {found.lines:,} last lines understood in {path}"
    if found.format is None or not found.steps:
        return "warn", f"no known format: {told}", Reason.FORMAT_UNKNOWN
    return "ok", f"{found.format}: {told}", None


def _hop_words(hop: Reached) -> str:
    version = hop.version.partition(" ")[0]  # what follows is the distribution's own remark
    return f"{hop.shown}  {version}  {hop.connect_s * 1000:.0f} ms  host key {hop.host_key}"


def _entry_words(target: Target) -> str:
    words = [word for word in target.exec if word != "--"]
    return f"{' '.join(words)}: running" if words else "no wrapper: commands run on the host itself"


def _slow_agent() -> ConsoleError:
    return ConsoleError(Reason.BOOTSTRAP_FAILED, f"no agent answered within {AGENT_S:g} s", Exit.ENTRY)
