"""`restart`: plan, confirm, hand over to a keeper, and prove what came of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from console.config import Target
from console.engine import Engine
from console.headless import follow, output, store
from console.headless.session import deadline_after, opened, run_async, settled
from console.model import Accepted, Overrides, Plan
from console.reasons import ConsoleError, Exit, Reason, reason_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was asked for on the command line."""

    plan_only: bool = False
    plan_id: str | None = None
    yes: bool = False
    expect_run: str | None = None
    detach: bool = False
    wait_for: str | None = None
    timeout: float | None = None
    as_json: bool = False


def run(name: str, target: Target, *, overrides: Overrides, **options: object) -> int:
    """Carry the command out; return its exit code."""
    chosen = Options(**options)  # type: ignore[arg-type]  # click has checked the types
    if not target.command:
        raise ConsoleError(Reason.CONFIG, f"targets.{name}.command: not set; expected what to run", Exit.USAGE)
    try:
        return run_async(_restart(name, target, overrides, chosen))
    except ConsoleError as error:
        if not chosen.as_json:
            raise
        output.emit_json(output.error_json(error, name))
        return error.exit_code


async def _restart(name: str, target: Target, overrides: Overrides, options: Options) -> int:
    deadline = deadline_after(options.timeout)
    overrides = _stored_overrides(name, overrides, options)
    async with opened(name, target) as engine:
        snapshot = await settled(engine, deadline)
        follow.require_expected(snapshot, options.expect_run)
        refuse_if_under_way(engine, options.expect_run)
        plan = await engine.plan("restart", overrides)
        if options.plan_only:
            return _show(plan, overrides, as_json=options.as_json)
        _require_same(plan, options.plan_id)
        require_checks(plan)
        require_confirmed(plan, confirmed=options.yes or options.plan_id is not None)
        asked_at = engine.now()
        accepted = await engine.execute(plan, overrides)
        store.save_run(accepted.run_id, name)
        if options.detach or options.wait_for == "accepted":
            return report_accepted(name, accepted, as_json=options.as_json)
        wanted = options.wait_for or "stepping"
        snapshot, judged = await follow.until_outcome(
            engine,
            wanted,
            run_id=accepted.run_id,
            deadline=deadline,
            progress=follow.Progress(),
            since=asked_at,
        )
        return follow.report(engine, snapshot, judged, wanted, as_json=options.as_json)


def _stored_overrides(name: str, overrides: Overrides, options: Options) -> Overrides:
    """Return the overrides that belong to `--plan-id`, which repeats nothing of what it was made with."""
    if options.plan_id is None:
        return overrides
    stored = store.load_plan(options.plan_id)
    if stored.target != name or stored.action != "restart":
        detail = f"plan {options.plan_id} is a {stored.action} of {stored.target}"
        raise ConsoleError(Reason.PLAN_UNKNOWN, detail, Exit.REFUSED)
    return stored.overrides


def refuse_if_under_way(engine: Engine, expect_run: str | None) -> None:
    """Never double a launch that is under way; naming it with `--expect-run` means that it is to be replaced.

    Raises: ConsoleError(RESTART_UNDER_WAY), code 4.
    """
    snapshot = engine.snapshot
    run, lock, active = snapshot.run, snapshot.lock, follow.active_stage(snapshot)
    if lock is not None:
        who = f"{lock.operator} from {lock.origin}" if lock.origin else lock.operator
        detail = f"{who} is at {lock.stage} with {lock.name} id={lock.run_id}; use: dflash-console wait {lock.run_id}"
        raise ConsoleError(Reason.RESTART_UNDER_WAY, detail, Exit.LOCKED, data={"id": lock.run_id, "stage": lock.stage})
    if run and run.id and run.alive and active and not run.by_hand and expect_run is None:
        detail = f"{run.name} id={run.id} stage={active.stage}; use: dflash-console wait {run.id}"
        data = {"id": run.id, "stage": str(active.stage), "run": run.name}
        raise ConsoleError(Reason.RESTART_UNDER_WAY, detail, Exit.LOCKED, data=data)


def _show(plan: Plan, overrides: Overrides, *, as_json: bool) -> int:
    store.save_plan(plan.plan_id, store.StoredPlan(target=plan.target, action=plan.action, overrides=overrides))
    if as_json:
        output.emit_json(output.plan_json(plan) | {"exit_code": int(Exit.REFUSED if plan.refused else Exit.OK)})
    else:
        for line in output.plan_lines(plan):
            output.say(line)
    return Exit.REFUSED if plan.refused else Exit.OK


def _require_same(plan: Plan, plan_id: str | None) -> None:
    if plan_id is not None and plan.plan_id != plan_id:
        detail = f"plan {plan_id} no longer fits the host; it would be {plan.plan_id} now"
        raise ConsoleError(Reason.PLAN_CHANGED, detail, Exit.REFUSED, data={"plan_id": plan.plan_id})


def require_checks(plan: Plan) -> None:
    """Refuse a plan with a failed check: a healthy run is never killed for one that can't start.

    Raises: ConsoleError with the first failed check's reason, code 3.
    """
    for check in plan.refused:
        others = len(plan.refused) - 1
        detail = f"{check.id}: {check.detail}" + (f" (and {others} more)" if others else "")
        reason = reason_of(check.reason)
        code = Exit.LOCKED if reason is Reason.RESTART_UNDER_WAY else Exit.REFUSED
        checks = [f"{each.id}: {each.detail}" for each in plan.refused]
        raise ConsoleError(reason, detail, code, data={"stage": "preflight", "checks": checks})


def require_confirmed(plan: Plan, *, confirmed: bool) -> None:
    """Ask on a terminal; without one print the plan and refuse.

    Raises: ConsoleError(NOT_CONFIRMED), code 2.
    """
    if confirmed:
        return
    for line in output.plan_lines(plan):
        output.say(line)
    if sys.stdin.isatty() and sys.stdout.isatty():
        print(f"Type {plan.action} to go on: ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip() == plan.action:
            return
    raise ConsoleError(Reason.NOT_CONFIRMED, "nothing was touched", Exit.USAGE)


def report_accepted(name: str, accepted: Accepted, *, as_json: bool) -> int:
    """Say that the keeper has taken the request, and that nothing more is promised."""
    follow_up = f"dflash-console wait {accepted.run_id} --for {'stepping' if accepted.action == 'restart' else 'free'}"
    if as_json:
        fields = {"ok": True, "outcome": "accepted", "target": name, "run": accepted.name, "id": accepted.run_id}
        output.emit_json({**fields, "stage": "killing", "next": [follow_up], "exit_code": 0})
    else:
        output.say(f"ACCEPTED {accepted.name} id={accepted.run_id} stage=killing | next: {follow_up} --timeout 15s")
    return Exit.OK
