"""`doctor`: the way to a target and what is found there, one line a check, each standing alone."""

from __future__ import annotations

import time
from typing import Any

from console.config import Target
from console.engine.examination import IDS, Examination, Finding
from console.headless import output
from console.headless.interruption import carried_out
from console.reasons import CATALOGUE, Exit

_WIDTH = max(map(len, IDS))


def run(name: str, target: Target, *, as_json: bool) -> int:
    """Carry the command out; return 0 where all is well, 6 for a warning, the first failure's code."""
    return carried_out(_doctor(name, target, as_json=as_json))


async def _doctor(name: str, target: Target, *, as_json: bool) -> int:
    began = time.monotonic()
    examination = Examination(name, target, (lambda finding: None) if as_json else _say)
    await examination.run()
    took_s = time.monotonic() - began
    code = exit_code(examination.findings)
    if as_json:
        output.emit_json(as_fields(name, examination.findings, took_s, code))
    else:
        output.say(summary(examination.findings, took_s, code))
    return code


def exit_code(findings: list[Finding]) -> Exit:
    failed = next((finding for finding in findings if finding.state == "fail"), None)
    if failed is not None:
        return failed.exit_code
    return Exit.UNHEALTHY if any(finding.state == "warn" for finding in findings) else Exit.OK


def _say(finding: Finding) -> None:
    output.say(line(finding))


def line(finding: Finding) -> str:
    """Return a finding as `warn gpu.foreign     GPU 3: ... | next: ...`."""
    text = f"{finding.state or '?':<4} {finding.id:<{_WIDTH}}  {output.one_line(finding.detail)}"
    advice = next_step(finding)
    return f"{text} | next: {output.one_line(advice)}" if advice else text


def next_step(finding: Finding) -> str:
    """Return what to do about a finding; nothing for one that is well or not known."""
    if finding.state not in ("warn", "fail") or finding.next or finding.reason is None:
        return finding.next
    entry = CATALOGUE.get(finding.reason)
    return "; or: ".join(output.advice(entry.next)) if entry else ""


def summary(findings: list[Finding], took_s: float, code: Exit) -> str:
    counts = {state: sum(finding.state == state for finding in findings) for state in ("ok", "warn", "fail", None)}
    warnings = f"{counts['warn']} warning{'' if counts['warn'] == 1 else 's'}"
    unknown = f", {counts[None]} not known" if counts[None] else ""
    return f"{counts['ok']} ok, {warnings}, {counts['fail']} failed{unknown} ({took_s:.1f} s); code {int(code)}"


def as_fields(name: str, findings: list[Finding], took_s: float, code: Exit) -> dict[str, Any]:
    """Return the examination as the fields of a JSON object."""
    return {
        "ok": code is Exit.OK,
        "outcome": "examined",
        "target": name,
        "run": None,
        "id": None,
        "checks": [_check_fields(finding) for finding in findings],
        "took_s": output.rounded(took_s),
        "exit_code": int(code),
        "at": output.utc(time.time()),
        "data_age_s": 0.0,
    }


def _check_fields(finding: Finding) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": finding.id,
        "state": finding.state,
        "detail": finding.detail,
        "reason": str(finding.reason) if finding.reason else None,
        "next": next_step(finding) or None,
        "took_s": output.rounded(finding.took_s),
    }
    return fields | ({} if finding.state else {"why": finding.detail})
