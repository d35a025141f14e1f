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
    Overrides,
    Plan,
    Snapshot,
)
from console.protocol import GpuSpec, PreflightSpec, Recorder, Reply, RunSpec, Taken, WirePlan, WireSample
from console.reasons import ConsoleError, Exit, Reason, reason_of
from console.state import changes
from console.state.wireviews import lock, process

T = TypeVar("T")

_EXIT_CODES = {
    Reason.RESTART_UNDER_WAY: Exit.LOCKED,
    Reason.UNEXPECTED_RUN: Exit.LOCKED,
    Reason.NOTHING_RUNS: Exit.NOTHING_RUNS,
    Reason.PROTOCOL: Exit.BUG,
}


def run_spec(name: str, target: Target, overrides: Overrides) -> RunSpec:
    """Return what the host is to run: the target's config, or a past run's settings, with one restart's overrides.

    Raises: ConsoleError(SECRET_NOT_KEPT).
    """
    base = overrides.base.settings if overrides.base is not None else None
    env = {**base_env(target, overrides), **overrides.env}
    unset = (*(each for each in base.unset if each not in overrides.env), *overrides.unset) if base else overrides.unset
    return RunSpec(
        target=name,
        name=overrides.name or target.name,
        command=(*(base.argv if base else target.command), *overrides.args),
        cwd=base.cwd if base else target.cwd,
        log=target.log,
        env={key: value for key, value in env.items() if key not in overrides.unset},
        unset=unset,
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


def base_env(target: Target, overrides: Overrides) -> dict[str, str]:
    """Return the environment that `overrides.env` comes on top of: the config's, or that of a past run.

    Of a secret-looking value only a hash was kept: the config's takes its place. Raises: ConsoleError(SECRET_NOT_KEPT)
    where neither the config nor the operator gives one.
    """
    if overrides.base is None:
        return dict(target.env)
    env = {}
    for key, value in overrides.base.settings.env.items():
        if changes.shown(value) != value:
            given = target.env.get(key, overrides.env.get(key))
            if given is None and key not in overrides.unset:
                detail = f"{key} of {overrides.base.name}: only a hash was kept of it"
                raise ConsoleError(Reason.SECRET_NOT_KEPT, detail, Exit.REFUSED)
            value = given or ""
        env[key] = value
    return env


def _from_env(target: Target, overrides: Overrides) -> dict[str, tuple[str | None, str | None]]:
    """Return where a past run's environment differs from the config's: name -> (config, that run)."""
    if overrides.base is None:
        return {}
    past, env = overrides.base.settings.env, target.env
    differ = {key: (env.get(key), past.get(key)) for key in sorted(past.keys() | env.keys())}
    # Of a secret-looking value only a hash is there, and the config's is taken.
    return {key: both for key, both in differ.items() if both[0] != both[1] and changes.shown(both[1]) == both[1]}


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


def recorder(number: int, name: str, target: Target, run: str) -> Recorder:
    """Return the question for a run's flight recorder, which the bulk agent understands as well."""
    return Recorder(id=number, run=run, target=name, state_dir=target.state_dir)


def accepted(taken: Taken, action: str) -> Accepted:
    return Accepted(run_id=taken.run, name=taken.name, action=action)


def plan_from_wire(wire: WirePlan, target: str, config: Target, overrides: Overrides, snapshot: Snapshot) -> Plan:
    """Return the host's plan with what the log says is lost by it."""
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
        lost_steps=snapshot.steps_at_stake if wire.replaces else None,
        checkpoint_step=snapshot.progress.checkpoint_step,
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
        argv_before=wire.argv_before,
        cwd_before=wire.cwd_before,
        files_changed=wire.files_changed,
        since=wire.since_name or wire.since_id or "",
        from_run=(overrides.base.name or overrides.base.id) if overrides.base is not None else None,
        from_env=_from_env(config, overrides),
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
        under_way=lock(wire.lock) if wire.lock is not None else None,
        made_at=snapshot.at,
    )


def decode_records(data: dict[str, Any], kind: type[T]) -> list[T]:
    """Return the `records` of a reply; a record that doesn't fit (a keeper of another age) is passed over."""
    found: list[T] = []
    for record in data.get("records", ()):
        try:
            found.append(msgspec.convert(record, kind))
        except msgspec.ValidationError:
            continue
    return found


def pieces(reply: Reply, data: bytes) -> list[tuple[int, bytes]]:
    """Return the places of a LogSample's answer: where each begins, and what stands there. Raises: as `checked`."""
    told, found, place = checked(reply, WireSample), [], 0
    for offset, length in zip(told.offsets, told.sizes, strict=True):
        found.append((offset, data[place : place + length]))
        place += length
    return found
