"""`stop`: what runs on the target is ended, and proven to be gone."""

from __future__ import annotations

from console.config import Target
from console.headless import earlier, follow, interruption, report, restart
from console.headless.interruption import carried_out
from console.headless.session import deadline_after, opened, settled
from console.model import Overrides
from console.reasons import ConsoleError, Exit, Reason


def run(name: str, target: Target, **options: object) -> int:
    """Carry the command out; return its exit code."""
    return carried_out(_stop(name, target, restart.Options(**options)))  # type: ignore[arg-type]  # as click checked


async def _stop(name: str, target: Target, options: restart.Options) -> int:
    deadline = deadline_after(options.timeout)
    interruption.standing().wants = "" if options.plan_only else "stop"
    async with opened(name, target) as engine:
        snapshot = await settled(engine, deadline)
        follow.require_expected(snapshot, options.expect_run)
        plan = await engine.plan("stop")
        if not plan.replaces:
            raise ConsoleError(Reason.NOTHING_RUNS, "nothing runs on this target", Exit.NOTHING_RUNS)
        if options.plan_only:
            return restart.show_plan(engine, plan, Overrides(), options)
        restart.require_same(plan, options.plan_id)
        restart.require_checks(plan)
        if not (options.yes or options.plan_id is not None):
            await restart.confirm(engine, plan, Overrides(), options)
        accepted = await restart.execute(engine, plan, Overrides(), options)
        if options.detach:
            return restart.report_accepted(engine, accepted, options)
        found, judged = await follow.until_outcome(
            engine,
            "free",
            # A stop may have a record of its own, which is never "the run" on the screen; a hand-started run has no id.
            run_id=plan.replaced_id,
            deadline=deadline,
            progress=follow.Progress(quiet_before=True),
        )
        ending = await earlier.ending(engine, found, judged, "free", run_id=plan.replaced_id, deadline=deadline)
        return report.report(ending, "free", plan=plan, as_json=options.as_json)
