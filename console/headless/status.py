"""`status`: one line or one object about a target, with the age of what it rests on."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from console.config import Target
from console.headless import follow, output
from console.headless.interruption import carried_out
from console.headless.session import deadline_after, opened, settled
from console.model import ContainerView, Gpu, GpuNote, Progress, Severity, Snapshot, StageState, Verdict
from console.reasons import ConsoleError, Exit, Reason
from console.state import outcome


def run(name: str, target: Target, *, check: bool, timeout: float | None, as_json: bool) -> int:
    """Carry the command out; return its exit code (0 unless `check` or the link fails)."""
    try:
        return carried_out(_status(name, target, check=check, timeout_s=timeout, as_json=as_json))
    except ConsoleError as error:
        if error.exit_code not in (Exit.LINK, Exit.ENTRY):
            raise
        if as_json:
            error.data = {"verdict": str(_unreached(error)), "health": "unknown", **error.data}
            raise
        for line in link_lost_lines(name, error):
            output.say(line)
        return error.exit_code


def link_lost_lines(name: str, error: ConsoleError) -> list[str]:
    """Return the word on a target that can't be reached: nothing is known of it here, and that is what is said."""
    first, *rest = output.error_lines(error)
    word = _unreached(error).upper().replace("_", "-")
    return [f"{name} {word} last=unknown age=? {first.removeprefix('LINK ')}", *rest]


def _unreached(error: ConsoleError) -> Verdict:
    return Verdict.FROZEN if error.reason is Reason.CONTAINER_FROZEN else Verdict.LINK_LOST


async def _status(name: str, target: Target, *, check: bool, timeout_s: float | None, as_json: bool) -> int:
    deadline = deadline_after(timeout_s)
    async with opened(name, target) as engine:
        snapshot = await settled(engine, deadline)
        code = outcome.check_exit_code(snapshot) if check else Exit.OK
        if as_json:
            output.emit_json(status_json(snapshot) | {"exit_code": int(code)})
        else:
            for line in status_lines(snapshot):
                output.say(line)
        return code


def _told(snapshot: Snapshot) -> Snapshot:
    """Return what may be told: nothing of how far a run came while what stood in its log is still being read."""
    return replace(snapshot, progress=Progress()) if snapshot.log.unread else snapshot


def _unread(snapshot: Snapshot) -> str:
    step = snapshot.progress.step
    return "its log is still being read" + (f", so far to step {step}" if step is not None else "") + ": ask again"


def status_lines(snapshot: Snapshot) -> list[str]:
    unread, snapshot = _unread(snapshot) if snapshot.log.unread else "", _told(snapshot)
    run, progress = snapshot.run, snapshot.progress
    words = [snapshot.target, snapshot.verdict.upper().replace("_", "-"), output.one_line(run.name) if run else "-"]
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
        lowest = f"{queue.lowest:g}-" if queue.lowest is not None and queue.lowest < queue.min_ready else ""
        depth = f"/{queue.max_depth:g}" if queue.max_depth is not None else ""
        words.append(f"queue={lowest}{queue.min_ready:g}{depth}")
    words += _gpu_words(snapshot)
    if run and run.alive and run.spawned_at is not None:
        words.append(f"up={output.span(max(0.0, snapshot.at - run.spawned_at))}")
    age = max((age for age in (snapshot.ages.link, snapshot.ages.log) if age is not None), default=None)
    words.append(f"age={output.age(age)}" if age is not None else "age=?")
    lines = [" ".join(word for word in words if word)]
    if unread:
        lines.append(f"  {unread}")
    if snapshot.reason:
        reason = snapshot.reason
        lines.append(f"  {reason.slug}: {output.one_line(reason.detail or reason.title)}")
        lines += [f"    {output.one_line(fact.label)}: {output.one_line(fact.text)}" for fact in reason.facts]
        if reason.safe:
            lines.append(f"  safe: {output.one_line(reason.safe)}")
        if reason.next:
            lines.append(f"  next: {output.one_line('; or: '.join(output.advice(reason.next)))}")
    lines += [
        f"  warn {warning.slug}  {output.one_line(warning.detail or warning.title)}" for warning in snapshot.warnings
    ]
    if progress.checkpoint_step is not None:
        ago = f", {snapshot.at - progress.checkpoint_at:.0f} s ago" if progress.checkpoint_at is not None else ""
        lost = f" ({progress.step - progress.checkpoint_step} steps)" if progress.step is not None else ""
        lines.append(f"  last checkpoint {progress.checkpoint_step}{ago}{lost}")
    return lines


def _delta(snapshot: Snapshot) -> str:
    rate = snapshot.progress.rate
    if rate.unlike:
        return f" (not compared: {output.one_line(rate.unlike)})"
    return f" ({rate.delta_pct:+.1f}% vs {rate.baseline_name})" if rate.delta_pct is not None else ""


def _gpu_words(snapshot: Snapshot) -> list[str]:
    panel = snapshot.gpus
    if panel.source in ("none", "unknown"):
        return ["gpus=?" if panel.source == "unknown" else "gpus=none"]
    total = panel.expected if panel.expected is not None else len(panel.gpus)
    cannot_tell = bool(panel.gpus) and all(gpu.context is None for gpu in panel.gpus)
    return [f"gpus={'?' if cannot_tell else len(panel.contexts)}/{total}"]


def status_json(snapshot: Snapshot) -> dict[str, Any]:
    whys, snapshot = _whys(snapshot), _told(snapshot)
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
            "unread": snapshot.log.unread,
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
        "gpus": [_gpu_json(gpu, snapshot.gpus.notes) for gpu in snapshot.gpus.gpus],
        "container": _container_json(snapshot.container),
        "reason": snapshot.reason.slug if snapshot.reason else None,
        "detail": snapshot.reason.detail if snapshot.reason else None,
        "safe": snapshot.reason.safe if snapshot.reason else None,
        "next": output.advice(snapshot.reason.next) if snapshot.reason else [],
        "warnings": [warning.slug for warning in snapshot.warnings],
        "age_s": {
            "link": output.rounded(snapshot.ages.link),
            "log": output.rounded(snapshot.ages.log),
            "gpu": output.rounded(snapshot.ages.gpu),
            "process": output.rounded(snapshot.ages.process),
        },
        "why": whys,
        "link": "own",
    }


def _whys(snapshot: Snapshot) -> dict[str, str]:
    """Say of each `null` that isn't plain from the rest why it is one."""
    seen, snapshot = snapshot, _told(snapshot)
    run, progress, rate = snapshot.run, snapshot.progress, snapshot.progress.rate
    if run is None:
        return {"run": "no run is known on this target"}
    whys = {}
    if run.id is None:
        whys["id"] = "started by hand"
    if run.alive is None:
        whys["alive"] = "not known now"
    unseen = snapshot.log.detail or f"log {snapshot.log.state}, {progress.lines_understood} step lines seen"
    if snapshot.log.unread:
        unseen = _unread(seen)
    if progress.step is None:
        whys["step"] = unseen
    if progress.loss is None:
        whys["loss"] = "the loss is not a number" if progress.loss_state else unseen
    if rate.now is None:
        whys["tok_s.now"] = "the run is over" if run.alive is False else unseen
    if rate.steady is None:
        whys["tok_s.steady"] = "not enough steps after the warm-up" if not snapshot.log.unread else unseen
    if rate.baseline is None:
        whys["tok_s.baseline"] = rate.unlike or (unseen if snapshot.log.unread else "none is configured")
    if progress.queue is None:
        whys["queue"] = "the log states none" if not snapshot.log.unread else unseen
    if progress.checkpoint_step is None:
        whys["checkpoint"] = "no checkpoint line was seen" if not snapshot.log.unread else unseen
    if not snapshot.gpus.gpus:
        whys["gpus"] = snapshot.gpus.why or f"source {snapshot.gpus.source}"
    return whys


def _container_json(container: ContainerView | None) -> dict[str, Any] | None:
    if container is None:
        return None
    return {
        "frozen": container.frozen,
        "memory_limit_bytes": container.memory_limit_bytes,
        "memory_used_bytes": container.memory_used_bytes,
        "oom_kills": container.oom_kills,
        "why": container.why or None,
    }


def _gpu_json(gpu: Gpu, notes: tuple[GpuNote, ...]) -> dict[str, Any]:
    return {
        "index": gpu.index,
        "cuda_index": gpu.cuda_index,
        "name": gpu.name or None,
        "uuid": gpu.uuid or None,
        "role": gpu.role,
        "used_bytes": gpu.used_bytes,
        "total_bytes": gpu.total_bytes,
        "reserved_bytes": gpu.reserved_bytes,
        "peak_bytes": gpu.peak_bytes,
        "util_pct": gpu.util_pct,
        "power_w": gpu.power_w,
        "power_limit_w": gpu.power_limit_w,
        "temperature_c": gpu.temperature_c,
        "clock_mhz": gpu.clock_mhz,
        "throttle": gpu.throttle,
        "ecc_errors": gpu.ecc_errors,
        "retired": gpu.retired,
        "xid": gpu.xid,
        "mig": None if gpu.parts is None else [part.uuid for part in gpu.parts],
        "owner": gpu.owner,
        "owner_why": gpu.owner_why or None,
        "context": gpu.context,
        "pids": list(gpu.pids),
        "others": [
            {
                "pid": each.pid,
                "bytes": each.bytes,
                "name": each.name or None,
                "user": each.user or None,
                "place": each.place or None,
            }
            for each in gpu.others
        ],
        "why": next((note.text for note in notes if gpu.index in note.gpus), None),
    }
