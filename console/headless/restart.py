"""`restart`: plan, confirm, hand over to a keeper, and prove what came of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import msgspec

from console.config import Target
from console.engine import Engine
from console.headless import earlier, follow, interruption, output, report, store
from console.headless.interruption import carried_out
from console.headless.session import deadline_after, on_terminal, opened, settled, typed_line
from console.model import Accepted, Overrides, Plan, Snapshot, StageStatus
from console.reasons import ConsoleError, Exit, Reason, reason_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was asked for on the command line."""

    plan_only: bool = False
    plan_id: str | None = None
    yes: bool = False
    expect_run: str | None = None
    from_run: str | None = None
    """A past run, by name or id, whose settings are taken again."""
    detach: bool = False
    wait_for: str | None = None
    timeout: float | None = None
    as_json: bool = False
    way: str = ""
    """The flags that lead to the target, for the commands that we advise."""


def run(name: str, target: Target, *, overrides: Overrides, **options: object) -> int:
    """Carry the command out; return its exit code."""
    chosen = Options(**options)  # type: ignore[arg-type]  # click has checked the types
    if not target.command:
        raise ConsoleError(Reason.CONFIG, f"targets.{name}.command: not set; expected what to run", Exit.USAGE)
    return carried_out(_restart(name, target, overrides, chosen))


async def _restart(name: str, target: Target, overrides: Overrides, options: Options) -> int:
    deadline = deadline_after(options.timeout)
    interruption.standing().wants = "" if options.plan_only else "restart"
    overrides = _stored_overrides(name, overrides, options)
    async with opened(name, target) as engine:
        snapshot = await settled(engine, deadline)
        follow.require_expected(snapshot, options.expect_run)
        refuse_if_under_way(engine, options)
        if options.from_run is not None and options.plan_id is None:
            overrides = msgspec.structs.replace(overrides, base=await engine.past_run(options.from_run))
        plan = await engine.plan("restart", overrides)
        if options.plan_only:
            return show_plan(engine, plan, overrides, options)
        require_same(plan, options.plan_id)
        require_checks(plan)
        if not (options.yes or options.plan_id is not None):
            await confirm(engine, plan, overrides, options)
        asked_at = engine.now()
        accepted = await execute(engine, plan, overrides, options)
        if options.detach or options.wait_for == "accepted":
            return report_accepted(engine, accepted, options, usual_s=plan.usual_launch_s)
        wanted = options.wait_for or "stepping"
        snapshot, judged = await follow.until_outcome(
            engine,
            wanted,
            run_id=accepted.run_id,
            deadline=deadline,
            progress=follow.Progress(),
            since=asked_at,
        )
        ending = await earlier.ending(engine, snapshot, judged, wanted, run_id=accepted.run_id, deadline=deadline)
        return report.report(ending, wanted, plan=plan, as_json=options.as_json)


def note_run(accepted: Accepted, target: str) -> None:
    """Note which target the run belongs to; where that can't be done, it is there all the same."""
    if (why := store.save_run(accepted.run_id, target)) is not None:
        output.progress(f"not noted that {accepted.run_id} is of {target}: {output.one_line(why)}")


def _stored_overrides(name: str, overrides: Overrides, options: Options) -> Overrides:
    """Return the overrides that belong to `--plan-id`, which repeats nothing of what it was made with."""
    if options.plan_id is None:
        return overrides
    stored = store.load_plan(options.plan_id)
    if stored.target != name or stored.action != "restart":
        detail = f"plan {options.plan_id} is a {stored.action} of {stored.target}"
        raise ConsoleError(Reason.PLAN_UNKNOWN, detail, Exit.REFUSED)
    return stored.overrides


def refuse_if_under_way(engine: Engine, options: Options) -> None:
    """Never double a launch that is under way.

    The lock covers what can't be shared, the killing and the spawning. From then on until its first step a launch is
    left to whoever asked for it, unless it is named with `--expect-run`: one that hangs must be replaceable.
    Raises: ConsoleError(RESTART_UNDER_WAY), code 4.
    """
    snapshot = engine.snapshot
    run, lock, active = snapshot.run, snapshot.lock, _stage_under_way(snapshot)
    way_out = ""
    if lock is not None:
        who = f"{lock.operator} from {lock.origin}" if lock.origin else lock.operator
        detail = f"{who} is at {lock.stage} with {lock.name} id={lock.run_id} stage={lock.stage}"
        data = {"run": lock.name or None, "id": lock.run_id, "stage": lock.stage}
    elif run and run.id and run.alive and active and not run.by_hand and options.expect_run is None:
        detail = f"{run.name} id={run.id} stage={active.stage}"
        data = {"run": run.name, "id": run.id, "stage": str(active.stage)}
        way_out = f"; to replace it: --expect-run {run.name}"
    else:
        return
    detail += f"; use: dflash-console wait {data['id']}{options.way}{way_out}"
    raise ConsoleError(Reason.RESTART_UNDER_WAY, detail, Exit.LOCKED, data=data)


def _stage_under_way(snapshot: Snapshot) -> StageStatus | None:
    """Return the stage that a launch is in, if any; a run in whose log no step can be told is launched as far as can be
    proved."""
    if snapshot.reason is not None and snapshot.reason.slug == Reason.FORMAT_UNKNOWN:
        return None
    return follow.active_stage(snapshot)


def show_plan(engine: Engine, plan: Plan, overrides: Overrides, options: Options) -> int:
    """Print the plan and keep it for `--plan-id`; return 3 where a check refuses it."""
    store.save_plan(plan.plan_id, store.StoredPlan(target=plan.target, action=plan.action, overrides=overrides))
    if options.as_json:
        output.emit_json(_plan_json(engine, plan))
    else:
        for line in output.plan_lines(plan, report.doing(engine.snapshot)):
            output.say(line)
    return Exit.REFUSED if plan.refused else Exit.OK


def _plan_json(engine: Engine, plan: Plan) -> dict[str, Any]:
    return output.plan_json(plan, run_id=plan.replaced_id, data_age_s=engine.snapshot.ages.link)


def require_same(plan: Plan, plan_id: str | None) -> None:
    """Refuse where the plan that was confirmed is not the plan that would be carried out now.

    Raises: ConsoleError(PLAN_CHANGED), code 3.
    """
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


async def confirm(engine: Engine, plan: Plan, overrides: Overrides, options: Options) -> None:
    """Ask on a terminal; without one, or for `--json`, show the plan and refuse. The plan is kept for `--plan-id`.

    Raises: ConsoleError(NOT_CONFIRMED), code 2.
    """
    if options.as_json:
        store.save_plan(plan.plan_id, store.StoredPlan(target=plan.target, action=plan.action, overrides=overrides))
        data = {"plan_id": plan.plan_id, "plan": _plan_json(engine, plan)}
        raise ConsoleError(Reason.NOT_CONFIRMED, "refused: not confirmed", Exit.USAGE, data=data)
    show_plan(engine, plan, overrides, options)
    if on_terminal():
        print(f"Type {plan.action} to go on: ", end="", file=sys.stderr, flush=True)
        if (await typed_line()).strip() == plan.action:
            return
    raise ConsoleError(Reason.NOT_CONFIRMED, "refused: not confirmed", Exit.USAGE)


async def execute(engine: Engine, plan: Plan, overrides: Overrides, options: Options) -> Accepted:
    """Hand the plan to a keeper, and note that it is so. Raises: ConsoleError."""
    known = interruption.standing()
    known.asked = plan.action
    accepted = await engine.execute(plan, overrides)
    known.accepted, known.follow_up = accepted, _follow_up(accepted, options)
    note_run(accepted, engine.name)
    return accepted


def _follow_up(accepted: Accepted, options: Options) -> str:
    wanted = "stepping" if accepted.action == "restart" else "free"
    return f"dflash-console wait {accepted.run_id}{options.way} --for {wanted} --timeout 15s"


def report_accepted(engine: Engine, accepted: Accepted, options: Options, *, usual_s: float | None = None) -> int:
    """Say that the keeper has taken the request, and that nothing more is promised.

    `usual_s`: how long launches like this one take to their first step.
    """
    follow_up = _follow_up(accepted, options)
    interruption.standing().answer = Exit.OK
    if options.as_json:
        fields: dict[str, Any] = {
            "target": engine.name,
            "run": accepted.name or None,
            "id": accepted.run_id,
            "stage": "killing",
        }
        fields |= {"usual_s": output.rounded(usual_s), "next": [follow_up], "exit_code": int(Exit.OK)}
        fields |= {"at": output.utc(engine.now()), "data_age_s": output.rounded(engine.snapshot.ages.link)}
        output.emit_json({"ok": True, "outcome": "accepted", **fields})
    else:
        facts = f"id={accepted.run_id} stage=killing" + (f" usual={usual_s:.0f}s" if usual_s is not None else "")
        output.say(" ".join(filter(None, ["ACCEPTED", accepted.name, facts])) + f" | next: {follow_up}")
    return Exit.OK
