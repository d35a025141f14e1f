"""Waiting for a stage of one run: progress lines as stages change, then the outcome as a line or an object."""

from __future__ import annotations

import shlex
from typing import Any

from console.engine import Engine
from console.headless import output
from console.model import Snapshot, Stage, StageState, StageStatus
from console.reasons import ConsoleError, Exit, Reason
from console.state import outcome

_SPOKEN = (StageState.DONE, StageState.SKIPPED, StageState.FAILED, StageState.UNKNOWN, StageState.LATE)


class Progress:
    """Says each stage's change once, on stderr."""

    def __init__(self, *, quiet_before: bool = False) -> None:
        self._said: dict[Stage, StageState] = {}
        self._quiet = quiet_before

    def show(self, snapshot: Snapshot) -> None:
        for status in snapshot.stages:
            if self._said.get(status.stage) is status.state:
                continue
            began = status.state is StageState.ACTIVE and bool(status.evidence)
            if status.state in _SPOKEN or began:
                self._said[status.stage] = status.state
                if not self._quiet:
                    output.progress(output.stage_progress(status))
        self._quiet = False


async def until_outcome(
    engine: Engine,
    wanted: str,
    *,
    run_id: str | None,
    deadline: float | None,
    progress: Progress,
    since: float | None = None,
) -> tuple[Snapshot, outcome.Outcome]:
    """Wait until `wanted` is reached or can't be any more, or the deadline passes.

    `since`: when the run was asked for, where we did; the run that it replaces may still be shown for a moment.
    """

    def settled(snapshot: Snapshot) -> tuple[Snapshot, outcome.Outcome] | None:
        if run_id is None or (snapshot.run is not None and snapshot.run.id == run_id):
            progress.show(snapshot)  # not what the run that is being replaced once went through
        judged = outcome.judge(snapshot, wanted, run_id=run_id, since=since)
        return (snapshot, judged) if judged.settled else None

    found = await engine.until(settled, deadline)
    if found is not None:
        return found
    snapshot = engine.snapshot
    return snapshot, outcome.judge(snapshot, wanted, run_id=run_id, since=since)


def report(engine: Engine, snapshot: Snapshot, judged: outcome.Outcome, wanted: str, *, as_json: bool) -> int:
    """Print the outcome; return the exit code."""
    if as_json:
        output.emit_json(outcome_json(engine, snapshot, judged, wanted))
    else:
        output.say(outcome_line(snapshot, judged, wanted))
    return judged.exit_code


def outcome_line(snapshot: Snapshot, judged: outcome.Outcome, wanted: str) -> str:
    run, status = snapshot.run, judged.stage
    words = [judged.word, judged.where]
    if snapshot.reason and judged.word not in ("OK", "PENDING"):
        words.append(snapshot.reason.slug)
    words += [run.name if run else "?", *_facts(snapshot, judged)]
    line = " ".join(word for word in words if word)
    reason = snapshot.reason
    if reason and judged.word not in ("OK", "PENDING"):
        line += f": {output.one_line(reason.detail or reason.title)}"
        if reason.safe:
            line += f" | safe: {output.one_line(reason.safe)}"
        if reason.next:
            line += f" | next: {output.one_line('; or: '.join(reason.next))}"
    elif judged.word in ("PENDING", "LATE"):
        line += " on_track" if judged.word == "PENDING" else ""
        line += f" | next: dflash-console wait {run.id if run and run.id else ''} --for {wanted} --timeout 15s"
        if status and status.evidence:
            line = line.replace(" | next:", f": {output.one_line(status.evidence)} | next:", 1)
    return line


def _facts(snapshot: Snapshot, judged: outcome.Outcome) -> list[str]:
    run, status = snapshot.run, judged.stage
    facts = [f"id={run.id}"] if run and run.id else []
    if judged.word == "OK":
        if run and run.pid:
            facts.append(f"pid={run.pid}")
        if run and run.launch_s is not None:
            facts.append(f"launch={output.seconds(run.launch_s)}")
        if run and run.log_path:
            facts.append(f"log={shlex.quote(run.log_path)}")
        return facts
    if run and run.exit:
        if run.exit.signal is not None:
            facts.append(f"signal={run.exit.signal}")
        elif run.exit.code is not None:
            facts.append(f"status={run.exit.code}")
        if run.exit.lived_s is not None:
            facts.append(f"after={output.seconds(run.exit.lived_s)}")
    elif status and status.began_at is not None and status.state in (StageState.ACTIVE, StageState.LATE):
        facts.append(f"in_stage={max(0.0, snapshot.at - status.began_at):.0f}s")
        if status.usual_s is not None:
            facts.append(f"usual={status.usual_s:.0f}s")
    return facts


def outcome_json(engine: Engine, snapshot: Snapshot, judged: outcome.Outcome, wanted: str) -> dict[str, Any]:
    run, reason = snapshot.run, snapshot.reason
    fields: dict[str, Any] = {
        "ok": judged.exit_code == Exit.OK,
        "outcome": judged.outcome,
        **output.run_fields(snapshot),
        "wanted": wanted,
        "stage": str(judged.stage.stage) if judged.stage else None,
        "stages": [output.stage_json(status) for status in snapshot.stages],
        "verdict": str(snapshot.verdict),
        "run_alive": run.alive if run else False,
        "pid": run.pid if run else None,
        "log": run.log_path if run else None,
        "launch_s": output.rounded(run.launch_s) if run else None,
        "replaced": run.replaced if run else None,
        "link": "own",
    }
    if run and run.exit:
        fields |= {
            "exit_status": run.exit.code,
            "signal": run.exit.signal,
            "lived_s": output.rounded(run.exit.lived_s),
            "stopped_by": run.exit.by,
        }
    if reason:
        fields |= {
            "reason": reason.slug,
            "title": reason.title,
            "detail": reason.detail,
            "evidence": [{"label": fact.label, "text": fact.text} for fact in reason.facts],
            "safe": reason.safe,
            "next": list(reason.next),
            **log_excerpt(engine),
        }
    fields["exit_code"] = int(judged.exit_code)
    return fields


def log_excerpt(engine: Engine, *, lines: int = 20, max_bytes: int = 4096) -> dict[str, Any]:
    """Return the last lines of the log and its first error line, capped."""
    tail: list[str] = []
    left = max_bytes
    for line in reversed(engine.last_lines(lines)):
        left -= len(line.encode())
        if left < 0:
            break
        tail.insert(0, line)
    error = engine.first_error()
    return {
        "log_tail": tail,
        "first_error": {"line": error[0], "offset": error[1], "text": error[2][:max_bytes]} if error else None,
    }


def require_expected(snapshot: Snapshot, expected: str | None) -> None:
    """Refuse when another run than the expected one is there.

    Raises: ConsoleError(UNEXPECTED_RUN), code 4.
    """
    if expected is None:
        return
    run = snapshot.run
    live = run if run and run.alive is not False else None
    names = {live.name, live.id} if live else set()
    if expected not in names:
        there = f"{live.name} (id {live.id})" if live else "nothing"
        detail = f"expected {expected}, found {there}"
        raise ConsoleError(Reason.UNEXPECTED_RUN, detail, Exit.LOCKED, data={"found": live.name if live else None})


def active_stage(snapshot: Snapshot) -> StageStatus | None:
    """Return the stage that a launch under way is in, or None where none is."""
    for status in snapshot.stages:
        if status.state in (StageState.ACTIVE, StageState.LATE):
            return status
    return None
