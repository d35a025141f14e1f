"""How results look on stdout: one-line sentences for people and scripts, objects for `--json`.

The grammar of a line is `WORD stage reason run id=.. k=v ...: detail | safe: .. | next: ..`; field names never change
within a schema. Everything here turns values into text and touches nothing.
"""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from console.model import Changes, Check, CheckState, Plan, Snapshot, StageState, StageStatus
from console.reasons import CATALOGUE, ConsoleError, Exit, Interrupted, Reason

SCHEMA = 1
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}


def one_line(text: str) -> str:
    """Return `text` with control characters escaped, so that it can't break a line or a terminal."""
    return text.translate(_CONTROL)


def say(line: str, stream: TextIO | None = None) -> None:
    """Print one result line, at once. Raises: ConsoleError(OUTPUT_UNUSABLE); BrokenPipeError."""
    try:
        print(line, file=stream or sys.stdout, flush=True)
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise ConsoleError(Reason.OUTPUT_UNUSABLE, f"stdout: {exc.strerror}") from exc


def progress(line: str) -> None:
    """Print one progress line on stderr with the operator's clock."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def emit_json(fields: dict[str, Any]) -> None:
    """Print one JSON object on one line, `schema` first."""
    say(msgspec.json.encode({"schema": SCHEMA, **fields}).decode())


def utc(at: float | None) -> str | None:
    """Return Unix seconds as UTC with Z, to the millisecond."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(value: float) -> str:
    """Return a duration as `0.01s`, `11.8s`, `112s`, as short as is true."""
    if value < 0.095:
        return f"{value:.2f}s"
    return f"{value:.1f}s" if value < 99.5 else f"{value:.0f}s"


def age(value: float) -> str:
    """Return an age to a tenth of a second, `0.8s`; no more is known of one."""
    return f"{value:.1f}s" if value < 99.5 else f"{value:.0f}s"


def span(value: float) -> str:
    """Return a long time as a person reads it: `45s`, `3m41s`, `2h14m`, `3d04h`."""
    whole = int(value)
    for unit, small, big_s, small_s in (("d", "h", 86400, 3600), ("h", "m", 3600, 60), ("m", "s", 60, 1)):
        if whole >= big_s:
            return f"{whole // big_s}{unit}{whole % big_s // small_s:02d}{small}"
    return f"{whole}s"


def size(count: float) -> str:
    """Return a size in bytes as `512 B`, `3.1 GiB`."""
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    index = 0
    while count >= 1024 and index < len(units) - 1:
        count /= 1024
        index += 1
    return f"{count:.0f} {units[index]}" if index == 0 else f"{count:.1f} {units[index]}"


def rounded(value: float | None, digits: int = 3) -> float | None:
    return None if value is None else round(value, digits)


def quoted_words(words: Iterable[str]) -> str:
    import shlex

    return one_line(shlex.join(words))


_AGAIN = re.compile(r"(\S+)'s settings again \(o\)")
_KEYS = (
    ("it is tried again by itself; c retries now", "try again"),
    ("it is started again by itself; c retries now", "try again"),
    ("; it is tried again by itself", ", then try again"),  # by the screen; a command is over
    ("c retries the link", "try again"),
    ("; l chooses another log", ""),
    ("f follows the new one; l lists the logs that are there", "read the log again"),
    (" (r)", ""), (" (s)", ""), (" (c)", ""), (" (e)", ""), (" (d)", ""), ("r starts ", "restart starts "),
)  # fmt: skip


def advice(steps: Iterable[str]) -> list[str]:
    """Return what to do next without the keys of the screen."""
    found = []
    for step in steps:
        for key, instead in _KEYS:
            step = step.replace(key, instead)
        found.append(_AGAIN.sub(r"restart --from \1", step))
    return found


_WORDS = {
    Exit.LINK: "LINK",
    Exit.ENTRY: "LINK",
    Exit.REFUSED: "REFUSED",
    Exit.LOCKED: "REFUSED",
    Exit.NOTHING_RUNS: "NOTHING",
    Exit.TIMEOUT: "PENDING",
}
_OUTCOMES = {
    Exit.REFUSED: "refused",
    Exit.LOCKED: "refused",
    Exit.USAGE: "refused",
    Exit.NOTHING_RUNS: "nothing",
    Exit.TIMEOUT: "pending",
    Exit.LINK: "link",
    Exit.ENTRY: "link",
}


def is_result(error: ConsoleError) -> bool:
    """Whether the error answers the question (stdout) rather than says that it was put wrongly (stderr)."""
    return error.exit_code in _WORDS or error.reason is Reason.NOT_CONFIRMED


def error_lines(error: ConsoleError) -> list[str]:
    """Return a failure as a line with safe and next, then the last lines of a foreign stderr."""
    entry = CATALOGUE.get(error.reason)
    word = "REFUSED" if error.reason is Reason.NOT_CONFIRMED else _WORDS.get(error.exit_code, "ERROR")
    line = f"{word} {error.reason}: {one_line(error.detail or (entry.title if entry else ''))}"
    if entry and entry.safe:
        line += f" | safe: {entry.safe}"
    if entry and entry.next:
        line += f" | next: {'; or: '.join(advice(entry.next))}"
    return [line, *(f"  {one_line(text)}" for text in error.tail)]


def error_json(error: ConsoleError, target: str | None) -> dict[str, Any]:
    """Return a failure as the fields of a JSON object."""
    entry = CATALOGUE.get(error.reason)
    return {
        "ok": False,
        "outcome": _OUTCOMES.get(error.exit_code, "failed"),
        "target": target,
        "run": None,
        "id": None,
        "reason": str(error.reason),
        "title": entry.title if entry else str(error.reason),
        "detail": error.detail,
        "safe": entry.safe if entry else "",
        "next": advice(entry.next) if entry else [],
        "tail": list(error.tail),
        **error.data,
        "exit_code": int(error.exit_code),
        "at": utc(time.time()),
        "data_age_s": None,
    }


def usage_json(message: str, target: str | None) -> dict[str, Any]:
    """Return a mistake in the command line as the fields of a JSON object."""
    fields = {"ok": False, "outcome": "refused", "target": target, "run": None, "id": None, "reason": "usage"}
    fields |= {"title": "wrong usage", "detail": message, "safe": "nothing was touched", "next": ["see --help"]}
    return {**fields, "exit_code": int(Exit.USAGE), "at": utc(time.time()), "data_age_s": None}


def interruption_word(number: int) -> str:
    return "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


def interrupted_json(ended: Interrupted, target: str | None) -> dict[str, Any]:
    """Return the operator's control-c, or a signal from elsewhere, as the fields of a JSON object."""
    fields = {"ok": False, "outcome": "interrupted", "target": target, "run": None, "id": None}
    word = "interrupted by the operator" if ended.number == signal.SIGINT else interruption_word(ended.number)
    fields |= {"detail": f"{word}; {ended.detail}", "at": utc(time.time()), "data_age_s": None}
    return {**fields, **ended.data, "signal": ended.number, "exit_code": ended.exit_code}


# -- plans ------------------------------------------------------------------------------------------------------------


def plan_lines(plan: Plan, doing: str = "") -> list[str]:
    """Return a plan as the lines that a person confirms. `doing`: what the run to be replaced does now."""
    old = plan.replaced_name or "nothing"
    arrow = f"{old} -> {plan.name}" if plan.action == "restart" else f"stop {old}"
    lines = [f"plan {plan.plan_id}: {one_line(arrow)}", f"kill   {_kill(plan, doing)}"]
    pids = {process.pid for process in plan.replaces}
    for process in plan.replaces:
        if process.parent not in pids:  # its ranks and workers are named by their pids alone
            age = span(process.age_s) if process.age_s is not None else "?"
            lines.append(f"       {process.pid}  {age}  {quoted_words(process.argv)[:160]}")
    if plan.replaces:
        lines.append(f"       {plan.stop_signal}, {plan.grace_s:g} s grace, then KILL")
    if plan.action == "restart":
        lines += _start_lines(plan)
    lines.append(f"check  {'; '.join(_check_words(plan.checks))}")
    if plan.under_way:
        lock = plan.under_way
        lines.append(f"lock   {lock.operator} ({lock.origin}) is at {lock.stage} with {lock.name} id={lock.run_id}")
    return lines


def _kill(plan: Plan, doing: str) -> str:
    if not plan.replaces:
        return "nothing runs"
    pids = " ".join(str(process.pid) for process in plan.replaces)
    facts = [" ".join(filter(None, [one_line(plan.replaced_name or "?"), doing]))]
    if plan.replaced_by_hand:
        facts.append("started by hand")
    if plan.lost_steps:
        saved = plan.checkpoint_step
        since = f"since checkpoint {saved}" if saved is not None else "(no checkpoint seen)"
        facts.append(f"{plan.lost_steps} steps {since} are lost")
    if plan.gpu_bytes:
        facts.append(f"{size(plan.gpu_bytes)} on GPUs")
    return f"{pids}  {'; '.join(facts)}"


def _start_lines(plan: Plan) -> list[str]:
    lines = []
    for cache in plan.caches:
        if plan.keep_cache:
            text = "kept"
        elif cache.refused:
            text = f"refused: {cache.refused}"
        elif not cache.exists:
            text = "nothing to clear"
        else:
            text = ("at least " if cache.partial else "") + (size(cache.bytes) if cache.bytes is not None else "? B")
        lines.append(f"cache  {one_line(cache.path)} {text}")
    lines.append(f"start  {quoted_words(plan.argv)} in {one_line(plan.cwd)}, log {one_line(plan.log_path)}")
    if plan.from_run is not None:
        lines.append(f"from   {one_line(plan.from_run)}: its command, directory and environment")
        for key, (config, past) in plan.from_env.items():
            lines.append(f"       {one_line(key)} {one_line(_or_unset(past))}, config {one_line(_or_unset(config))}")
    changed = [
        f"env    {one_line(key)} {one_line(_or_unset(then))} -> {one_line(_or_unset(now))}"
        for key, (then, now) in plan.env_changed.items()
    ]
    if plan.argv_before is not None:
        changed.append(f"argv   {quoted_words(plan.argv_before)} -> {quoted_words(plan.argv)}")
    if plan.cwd_before is not None:
        changed.append(f"cwd    {one_line(plan.cwd_before)} -> {one_line(plan.cwd)}")
    changed += [f"file   {one_line(text)}" for text in plan.files_changed]
    if changed and plan.since:
        good = ", which reached stepping" if plan.since_stepped else ""
        lines.append(f"change since {one_line(plan.since)}{good}:")
    return [*lines, *changed, *_time_line(plan)]


def _time_line(plan: Plan) -> list[str]:
    if plan.usual_launch_s is None:
        return []
    own, other = ("kept", "cleared") if plan.keep_cache else ("cleared", "kept")
    launches = f"{plan.usual_launches} launch{'' if plan.usual_launches == 1 else 'es'}"
    facts = f"{launches} with a {own} cache" if plan.caches else launches
    if plan.usual_other_s is not None:
        facts += f"; {span(plan.usual_other_s)} with it {other}"
    return [f"time   about {span(plan.usual_launch_s)} to the first step ({facts})"]


def _or_unset(value: str | None) -> str:
    return "(unset)" if value is None else value


def _check_words(checks: tuple[Check, ...]) -> list[str]:
    good = sum(check.state is CheckState.OK for check in checks)
    words = [f"ok {good}/{len(checks)}"]
    for check in checks:
        if check.state is not CheckState.OK:
            name = check.reason or check.id
            words.append(f"{check.state} {name} {one_line(check.detail)}".rstrip())
    return words


def plan_json(plan: Plan, *, run_id: str | None, data_age_s: float | None) -> dict[str, Any]:
    """Return a plan as the fields of a JSON object; `run` and `id` are those of the run that it replaces."""
    fields: dict[str, Any] = msgspec.to_builtins(plan)
    del fields["made_at"]
    return {
        "ok": not plan.refused,
        "outcome": "planned",
        **fields,
        "run": plan.replaced_name,
        "id": run_id,
        "exit_code": int(Exit.REFUSED if plan.refused else Exit.OK),
        "at": utc(plan.made_at),
        "data_age_s": rounded(data_age_s),
    }


def changed_json(changes: Changes | None, plan: Plan | None) -> dict[str, Any] | None:
    """Return what differs from a run of before: after a failure from the last good one, else as the plan said."""
    if changes is not None:
        files: dict[str, list[str]] = {}
        for each in changes.items:
            if each.kind == "file":
                text = "edited" if not (each.then or "").startswith("mode ") else f"{each.then} -> {each.now}"
                files.setdefault(each.what, []).append(text)
        fields: dict[str, Any] = {
            "since": changes.since,
            "since_id": changes.since_id,
            "env": {each.what: [each.then, each.now] for each in changes.items if each.kind == "env"},
            "files": {path: ", ".join(texts) for path, texts in files.items()},
        }
        return fields | {each.kind: [each.then, each.now] for each in changes.items if each.kind in ("argv", "cwd")}
    if plan is None:
        return None
    told = (text.removesuffix(")").partition(" (") for text in plan.files_changed)
    return {
        "since": plan.since or None,
        "env": plan.env_changed,
        "files": {path: what or "edited" for path, _, what in told},
    }


# -- stages -----------------------------------------------------------------------------------------------------------


def stage_progress(status: StageStatus) -> str:
    """Return a stage's change as a progress line: `spawned   ok 0.8s   pid 90112, log opened inode 5512034`."""
    text = one_line(status.detail or status.evidence or status.why)
    took = f" {seconds(status.took_s)}" if status.took_s is not None else ""
    word = {
        StageState.DONE: f"ok{took}",
        StageState.SKIPPED: "skipped",
        StageState.FAILED: f"FAILED{took}",
        StageState.UNKNOWN: "unknown",
        StageState.LATE: "LATE",
    }.get(status.state, "")
    return f"{status.stage:<9} {word:<10} {text}".rstrip()


def stage_json(status: StageStatus) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "stage": str(status.stage),
        "state": str(status.state),
        "took_s": rounded(status.took_s),
        "usual_s": rounded(status.usual_s),
        "began_at": utc(status.began_at),
        "ended_at": utc(status.ended_at),
        "evidence": status.detail or status.evidence,
    }
    if status.why:
        fields["why"] = status.why
    if status.want is not None:
        fields |= {"k": status.have, "n": status.want, "missing": list(status.missing)}
        fields |= {"missing_parts": list(status.missing_parts)} if status.missing_parts else {}
    return fields


def run_fields(snapshot: Snapshot) -> dict[str, Any]:
    """Return what every object about a run carries."""
    run = snapshot.run
    return {
        "target": snapshot.target,
        "run": run.name if run else None,
        "id": run.id if run else None,
        "at": utc(snapshot.at),
        "data_age_s": rounded(snapshot.ages.link),
    }
