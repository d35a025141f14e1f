"""`status`: one line or one object about a target, with the age of what it rests on."""

from __future__ import annotations

from typing import Any

from console.config import Target
from console.headless import follow, output
from console.headless.session import deadline_after, opened, run_async, settled
from console.model import Gpu, Severity, Snapshot, StageState, Verdict
from console.reasons import ConsoleError, Exit
from console.state import outcome


def run(name: str, target: Target, *, check: bool, timeout: float | None, as_json: bool) -> int:
    """Carry the command out; return its exit code (0 unless `check` or the link fails)."""
    try:
        return run_async(_status(name, target, check=check, timeout_s=timeout, as_json=as_json))
    except ConsoleError as error:
        if not as_json:
            raise
        output.emit_json(output.error_json(error, name, verdict="link_lost"))
        return error.exit_code


async def _status(name: str, target: Target, *, check: bool, timeout_s: float | None, as_json: bool) -> int:
    deadline = deadline_after(timeout_s)
    async with opened(name, target) as engine:
        snapshot = await settled(engine, deadline)
        code = outcome.check_exit_code(snapshot)
        if as_json:
            output.emit_json(status_json(snapshot) | {"exit_code": int(code if check else Exit.OK)})
        else:
            for line in status_lines(snapshot):
                output.say(line)
        return code if check else Exit.OK


def status_lines(snapshot: Snapshot) -> list[str]:
    run, progress = snapshot.run, snapshot.progress
    words = [snapshot.target, snapshot.verdict.upper().replace("_", "-"), run.name if run else "-"]
    active = follow.active_stage(snapshot)
    if active and snapshot.verdict is Verdict.LAUNCHING:
        words += [f"stage={active.stage}", output.one_line(active.evidence)]
    if progress.step is not None:
        words.append(f"step={progress.step}")
    if progress.rate.now is not None and run and run.alive:
        words.append(f"tok/s={progress.rate.now:.0f}" + _delta(snapshot))
    if progress.loss is not None or progress.loss_state:
        words.append(f"loss={progress.loss_state or f'{progress.loss:.4g}'}")
    if progress.queue is not None:
        queue = progress.queue
        words.append(f"queue={queue.min_ready:g}" + (f"/{queue.max_depth:g}" if queue.max_depth is not None else ""))
    words += _gpu_words(snapshot)
    age = max((age for age in (snapshot.ages.link, snapshot.ages.log) if age is not None), default=None)
    words.append(f"age={output.seconds(age)}" if age is not None else "age=?")
    lines = [" ".join(word for word in words if word)]
    if snapshot.reason:
        reason = snapshot.reason
        lines.append(f"  {reason.slug}: {output.one_line(reason.detail or reason.title)}")
        lines += [f"    {output.one_line(fact.label)}: {output.one_line(fact.text)}" for fact in reason.facts]
        if reason.safe:
            lines.append(f"  safe: {output.one_line(reason.safe)}")
        if reason.next:
            lines.append(f"  next: {output.one_line('; or: '.join(reason.next))}")
    lines += [
        f"  warn {warning.slug}  {output.one_line(warning.detail or warning.title)}" for warning in snapshot.warnings
    ]
    if progress.checkpoint_step is not None:
        ago = f", {snapshot.at - progress.checkpoint_at:.0f} s ago" if progress.checkpoint_at is not None else ""
        lines.append(f"  last checkpoint {progress.checkpoint_step}{ago}")
    return lines


def _delta(snapshot: Snapshot) -> str:
    rate = snapshot.progress.rate
    return f" ({rate.delta_pct:+.1f}% vs {rate.baseline_name})" if rate.delta_pct is not None else ""


def _gpu_words(snapshot: Snapshot) -> list[str]:
    panel = snapshot.gpus
    if panel.source in ("none", "unknown"):
        return ["gpus=?" if panel.source == "unknown" else "gpus=none"]
    total = panel.expected if panel.expected is not None else len(panel.gpus)
    return [f"gpus={len(panel.contexts)}/{total}"]


def status_json(snapshot: Snapshot) -> dict[str, Any]:
    run, progress, rate = snapshot.run, snapshot.progress, snapshot.progress.rate
    known = all(status.state is not StageState.UNKNOWN for status in snapshot.stages)
    return {
        "ok": snapshot.reason is None or snapshot.reason.severity is not Severity.ERROR,
        **output.run_fields(snapshot),
        "verdict": str(snapshot.verdict),
        "health": outcome.health_word(snapshot),
        "by_hand": run.by_hand if run else None,
        "alive": run.alive if run else False,
        "pid": run.pid if run else None,
        "launched_by": run.operator or None if run else None,
        "log": {
            "path": snapshot.log.path,
            "state": str(snapshot.log.state),
            "size_bytes": snapshot.log.size_bytes,
            "why": snapshot.log.detail or None,
        },
        "stages": [output.stage_json(status) for status in snapshot.stages],
        "stages_known": known,
        "step": progress.step,
        "total_steps": progress.total_steps,
        "loss": progress.loss,
        "loss_state": progress.loss_state,
        "format": progress.format,
        "tok_s": {
            "now": rate.now,
            "steady": rate.steady,
            "mad": rate.mad,
            "n": rate.n,
            "scope": rate.scope,
            "baseline": {
                "run": rate.baseline_name,
                "value": rate.baseline,
                "delta_pct": output.rounded(rate.delta_pct, 2),
            }
            if rate.baseline is not None
            else None,
        },
        "queue": {
            "min_ready": progress.queue.min_ready,
            "max_depth": progress.queue.max_depth,
            "empty_pct": progress.queue.empty_pct,
            "bound": progress.queue.bound,
        }
        if progress.queue
        else None,
        "checkpoint": {
            "step": progress.checkpoint_step,
            "age_s": output.rounded(snapshot.at - progress.checkpoint_at, 1) if progress.checkpoint_at else None,
        }
        if progress.checkpoint_step is not None
        else None,
        "gpu_source": snapshot.gpus.source,
        "gpu_why": snapshot.gpus.why or None,
        "gpus": [_gpu_json(gpu) for gpu in snapshot.gpus.gpus],
        "reason": snapshot.reason.slug if snapshot.reason else None,
        "detail": snapshot.reason.detail if snapshot.reason else None,
        "safe": snapshot.reason.safe if snapshot.reason else None,
        "next": list(snapshot.reason.next) if snapshot.reason else [],
        "warnings": [warning.slug for warning in snapshot.warnings],
        "age_s": {
            "link": output.rounded(snapshot.ages.link),
            "log": output.rounded(snapshot.ages.log),
            "gpu": output.rounded(snapshot.ages.gpu),
            "process": output.rounded(snapshot.ages.process),
        },
        "link": "own",
    }


def _gpu_json(gpu: Gpu) -> dict[str, Any]:
    return {
        "index": gpu.index,
        "name": gpu.name or None,
        "role": gpu.role,
        "used_bytes": gpu.used_bytes,
        "total_bytes": gpu.total_bytes,
        "peak_bytes": gpu.peak_bytes,
        "util_pct": gpu.util_pct,
        "power_w": gpu.power_w,
        "temperature_c": gpu.temperature_c,
        "owner": gpu.owner,
        "context": gpu.context,
        "pids": list(gpu.pids),
        "why": gpu.warning or None,
    }
