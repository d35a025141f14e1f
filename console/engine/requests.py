"""Config and overrides into what goes over the wire, and what comes back into plans. No state, no I/O."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from console.config import Target
from console.model import (
    Accepted,
    CachePlan,
    Check,
    CheckState,
    Lock,
    Overrides,
    Plan,
    Process,
    Snapshot,
)
from console.protocol import GpuSpec, LockHolder, PreflightSpec, Reply, RunSpec, Taken, WirePlan, WireProcess
from console.reasons import ConsoleError, Exit, Reason, reason_of

T = TypeVar("T")

_EXIT_CODES = {
    Reason.RESTART_UNDER_WAY: Exit.LOCKED,
    Reason.UNEXPECTED_RUN: Exit.LOCKED,
    Reason.NOTHING_RUNS: Exit.NOTHING_RUNS,
    Reason.PROTOCOL: Exit.BUG,
}


def run_spec(name: str, target: Target, overrides: Overrides) -> RunSpec:
    """Return what the host is to run: the target's config with one restart's overrides."""
    return RunSpec(
        target=name,
        name=overrides.name or target.name,
        command=(*target.command, *overrides.args),
        cwd=target.cwd,
        log=target.log,
        env={key: value for key, value in {**target.env, **overrides.env}.items() if key not in overrides.unset},
        unset=overrides.unset,
        match=target.match,
        caches=target.caches,
        keep_cache=overrides.keep_cache,
        stop_signal=target.stop.signal,
        grace_s=target.stop.grace_s,
        preflight=PreflightSpec(
            free_gib=target.preflight.free_gib, files=target.preflight.files, modules=target.preflight.modules
        ),
        gpus=GpuSpec(expected=target.gpus.expected, simulated=target.gpus.simulated),
    )


def checked(reply: Reply, kind: type[T]) -> T:
    """Return the reply's data as `kind`.

    Raises: ConsoleError with the host's reason for a refusal; PROTOCOL where the data doesn't fit.
    """
    if not reply.ok:
        error = reply.error
        if error is None:
            raise ConsoleError(Reason.PROTOCOL, "the agent refused without a reason", Exit.BUG)
        reason = reason_of(error.reason)
        detail = error.detail if reason is not Reason.UNKNOWN else f"{error.reason}: {error.detail}"
        raise ConsoleError(reason, detail, _EXIT_CODES.get(reason, Exit.REFUSED), data=dict(error.data))
    try:
        return msgspec.convert(reply.data, kind)
    except msgspec.ValidationError as exc:
        raise ConsoleError(Reason.PROTOCOL, f"the agent's answer doesn't fit: {exc}", Exit.BUG) from exc


def accepted(taken: Taken, action: str) -> Accepted:
    return Accepted(run_id=taken.run, name=taken.name, action=action)


def plan_from_wire(wire: WirePlan, target: str, config: Target, overrides: Overrides, snapshot: Snapshot) -> Plan:
    """Return the host's plan with what the log says is lost by it."""
    progress, run = snapshot.progress, snapshot.run
    lost = None
    if run and run.alive and progress.step is not None:
        lost = progress.step - (progress.checkpoint_step or 0)
    return Plan(
        plan_id=wire.plan_id,
        action=wire.action,
        target=target,
        name=wire.name,
        argv=wire.argv,
        cwd=wire.cwd,
        log_path=wire.log_path,
        replaces=tuple(process(each) for each in wire.replaces),
        replaced_name=wire.replaced_name,
        replaced_id=wire.replaced_id,
        replaced_by_hand=wire.by_hand,
        lost_steps=lost if wire.replaces else None,
        checkpoint_step=progress.checkpoint_step,
        gpu_bytes=wire.gpu_bytes,
        bystanders=tuple(process(each) for each in wire.bystanders),
        caches=tuple(
            CachePlan(
                path=cache.path,
                exists=cache.exists,
                bytes=cache.bytes,
                files=cache.files,
                partial=cache.partial,
                refused=cache.refused,
            )
            for cache in wire.caches
        ),
        keep_cache=overrides.keep_cache,
        stop_signal=config.stop.signal,
        grace_s=config.stop.grace_s,
        env_changed=wire.env_changed,
        env_same=wire.env_same,
        files_changed=wire.files_changed,
        checks=tuple(
            Check(
                id=check.id,
                state=CheckState(check.state),
                detail=check.detail,
                reason=check.reason,
                label=check.label,
            )
            for check in wire.checks
        ),
        usual_launch_s=_usual_launch_s(snapshot),
        under_way=_lock(wire.lock),
        made_at=snapshot.at,
    )


def process(wire: WireProcess) -> Process:
    return Process(
        pid=wire.pid,
        start_ticks=wire.start,
        parent=wire.ppid,
        argv=wire.argv,
        state=wire.state,
        age_s=wire.age_s,
        rss_bytes=wire.rss,
        cpu_pct=wire.cpu_pct,
    )


def _usual_launch_s(snapshot: Snapshot) -> float | None:
    usual = [status.usual_s for status in snapshot.stages]
    known = [each for each in usual if each is not None]
    return sum(known) if len(known) == len(usual) else None


def _lock(holder: LockHolder | None) -> Lock | None:
    if holder is None:
        return None
    return Lock(operator=holder.operator, origin=holder.origin, run_id=holder.run, name=holder.name, stage=holder.stage)


def decode_records(data: dict[str, Any], kind: type[T]) -> list[T]:
    """Return the `records` of a reply; a record that doesn't fit (a keeper of another age) is passed over."""
    found: list[T] = []
    for record in data.get("records", ()):
        try:
            found.append(msgspec.convert(record, kind))
        except msgspec.ValidationError:
            continue
    return found
