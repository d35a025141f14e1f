"""Saying how the waiting for a run ended: the outcome as one line or one object, and as an exit code.

What is waited for, and when the outcome is settled, is in `follow`: nothing here waits.
"""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from console.engine import Engine
from console.headless import interruption, output
from console.model import Plan, Snapshot, StageState
from console.reasons import Exit
from console.state import outcome


class Steady(msgspec.Struct, frozen=True):
    """A steady rate, as the line and as the fields of `tok_s`."""

    line: str
    fields: dict[str, Any]


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How the waiting for a run ended."""

    snapshot: Snapshot
    judged: outcome.Outcome
    engine: Engine | None
    """Which has read the log of that run, if one has."""
    is_earlier: bool = False
    """Another run is there by now, so that the time of its end is told, too."""


def report(
    ending: Ending, wanted: str, *, plan: Plan | None = None, steady: Steady | None = None, as_json: bool
) -> int:
    """Print the outcome; return the exit code.

    `plan`: what was carried out; `steady`: the rate that was waited for.
    """
    snapshot, judged = ending.snapshot, ending.judged
    interruption.standing().answer = judged.exit_code
    if as_json:
        fields = outcome_json(ending.engine, snapshot, judged, wanted, plan)
        output.emit_json(fields | ({"tok_s": steady.fields} if steady is not None else {}))
    else:
        line = outcome_line(snapshot, judged, plan, is_earlier=ending.is_earlier)
        output.say(steady.line if steady is not None else line)
    return judged.exit_code


def outcome_line(
    snapshot: Snapshot, judged: outcome.Outcome, plan: Plan | None = None, *, is_earlier: bool = False
) -> str:
    run, status, reason = snapshot.run, judged.stage, snapshot.reason
    is_fine = judged.word in ("OK", "PENDING")
    words = [judged.word, judged.where]
    if reason and not is_fine and reason.slug != judged.where:
        words.append(reason.slug)
    name = (run.name if run else None) or (plan.replaced_name if plan and plan.action == "stop" else None)
    if judged.where != f"by {name}":
        words.append(output.one_line(name or "?"))
    words += _facts(snapshot, judged, is_earlier=is_earlier)
    if judged.word == "PENDING" and not (run and run.exit):
        words.append("on_track")
    line = " ".join(word for word in words if word)
    if judged.word == "PENDING":
        if status and status.evidence:
            line += f": {output.one_line(status.evidence)}"
        return f"{line} | next check in {next_check_s(snapshot, judged):.0f}s"
    if reason and not is_fine:
        line += f": {output.one_line(reason.detail or reason.title)}"
        if reason.safe:
            line += f" | safe: {output.one_line(reason.safe)}"
        if reason.next:
            line += f" | next: {output.one_line('; or: '.join(output.advice(reason.next)))}"
    return line


_CHECK_AGAIN_S = 15.0


def next_check_s(snapshot: Snapshot, judged: outcome.Outcome) -> float:
    """Return when it is worth asking again: when the stage usually ends, between 5 and 60 s from now."""
    status = judged.stage
    if status is None or status.state not in (StageState.ACTIVE, StageState.LATE):
        return _CHECK_AGAIN_S  # no stage is waited for: a number of steps, a checkpoint, the end
    if status.usual_s is None or status.began_at is None:
        return _CHECK_AGAIN_S
    return min(60.0, max(5.0, status.usual_s - (snapshot.at - status.began_at)))


def _facts(snapshot: Snapshot, judged: outcome.Outcome, *, is_earlier: bool = False) -> list[str]:
    run, status = snapshot.run, judged.stage
    facts = [f"id={run.id}"] if run and run.id else []
    if judged.word == "OK" and run and run.alive:
        if run.pid:
            facts.append(f"pid={run.pid}")
        if run.launch_s is not None:
            facts.append(f"launch={output.seconds(run.launch_s)}")
        if run.log_path:
            facts.append(f"log={shlex.quote(run.log_path)}")
        return facts
    if run and run.exit:
        if run.exit.signal is not None:
            facts.append(f"signal={run.exit.signal}")
        elif run.exit.code is not None:
            facts.append(f"status={run.exit.code}")
        if run.exit.lived_s is not None:
            facts.append(f"after={output.seconds(run.exit.lived_s)}")
        if run.exit.by and judged.word == "OK":
            facts.append(f"stopped_by={shlex.quote(run.exit.by)}")
        if is_earlier and run.exit.at is not None and judged.outcome != "replaced":
            facts.append(f"ended={output.utc(run.exit.at)}")
    elif status and status.began_at is not None and status.state in (StageState.ACTIVE, StageState.LATE):
        facts.append(f"in_stage={max(0.0, snapshot.at - status.began_at):.0f}s")
        if status.usual_s is not None:
            facts.append(f"usual={status.usual_s:.0f}s")
    return facts


_WAITING = {"pending": "on_track", "late": "late"}


def outcome_json(
    engine: Engine | None, snapshot: Snapshot, judged: outcome.Outcome, wanted: str, plan: Plan | None = None
) -> dict[str, Any]:
    run, reason = snapshot.run, snapshot.reason
    end = run.exit if run else None
    fields: dict[str, Any] = {
        "ok": judged.exit_code == Exit.OK,
        "outcome": judged.outcome,
        **output.run_fields(snapshot),
        "wanted": wanted,
        "stage": str(judged.stage.stage) if judged.stage else None,
        "stages": [output.stage_json(status) for status in snapshot.stages],
        "verdict": str(snapshot.verdict) if end else _WAITING.get(judged.outcome, str(snapshot.verdict)),
        "run_alive": run.alive if run else False,
        "pid": run.pid if run else None,
        "log": run.log_path if run else None,
        "launch_s": output.rounded(run.launch_s) if run else None,
        "replaced": run.replaced if run else None,
        "exit_status": end.code if end else None,
        "signal": end.signal if end else None,
        "lived_s": output.rounded(end.lived_s) if end else None,
        "ended_at": output.utc(end.at) if end else None,
        "stopped_by": end.by if end else None,
        "why": _whys(snapshot),
        "link": "own",
    }
    if judged.outcome in _WAITING:
        fields["next_check_s"] = output.rounded(next_check_s(snapshot, judged))
    if (changed := output.changed_json(snapshot.changes, plan)) is not None:
        fields["changed"] = changed
    if reason:
        fields |= {
            "reason": reason.slug,
            "title": reason.title,
            "detail": reason.detail,
            "evidence": [{"label": fact.label, "text": fact.text} for fact in reason.facts],
            "safe": reason.safe,
            "next": output.advice(reason.next),
            **(log_excerpt(engine) if engine is not None else {"log_tail": [], "first_error": None}),
        }
    fields["exit_code"] = int(judged.exit_code)
    return fields


def _whys(snapshot: Snapshot) -> dict[str, str]:
    """Say of each `null` that isn't plain from the rest why it is one."""
    run, whys = snapshot.run, {}
    if run is None:
        return {"run": "no run is known on this target"}
    if run.id is None:
        whys["id"] = "started by hand"
    if run.alive is None:
        whys["run_alive"] = "not known now"
    if run.pid is None:
        whys["pid"] = "not started yet" if run.exit is None else "never started"
    if run.launch_s is None:
        whys["launch_s"] = "started by hand" if run.by_hand else "no step was seen"
    if run.exit is None:
        whys["exit_status"] = "still there" if run.alive else "no exit was recorded"
    elif run.exit.code is None:
        whys["exit_status"] = f"ended by signal {run.exit.signal}" if run.exit.signal else "no status was recorded"
    if all(status.usual_s is None for status in snapshot.stages):
        whys["usual_s"] = "no past launches are known"
    return whys


def doing(snapshot: Snapshot) -> str:
    """Return what the run does now, for the line of a plan that ends it: `stepping 21.5K tok/s`."""
    if snapshot.run is None or not snapshot.run.alive:
        return ""
    rate = snapshot.progress.rate.now
    words = [str(snapshot.verdict)]
    if rate is not None:
        words.append(f"{rate / 1000:.1f}K tok/s" if rate >= 1000 else f"{rate:.0f} tok/s")
    return " ".join(words)


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
