"""`stop`: what runs on the target is ended, and proven to be gone."""

from __future__ import annotations

from console.config import Target
from console.headless import follow, output, restart, store
from console.headless.session import deadline_after, opened, run_async, settled
from console.reasons import ConsoleError, Exit, Reason


def run(
    name: str,
    target: Target,
    *,
    plan_only: bool,
    yes: bool,
    expect_run: str | None,
    detach: bool,
    timeout: float | None,
    as_json: bool,
) -> int:
    """Carry the command out; return its exit code."""
    options = restart.Options(
        plan_only=plan_only, yes=yes, expect_run=expect_run, detach=detach, timeout=timeout, as_json=as_json
    )
    try:
        return run_async(_stop(name, target, options))
    except ConsoleError as error:
        if not as_json:
            raise
        output.emit_json(output.error_json(error, name))
        return error.exit_code


async def _stop(name: str, target: Target, options: restart.Options) -> int:
    deadline = deadline_after(options.timeout)
    async with opened(name, target) as engine:
        snapshot = await settled(engine, deadline)
        follow.require_expected(snapshot, options.expect_run)
        plan = await engine.plan("stop")
        if not plan.replaces:
            raise ConsoleError(Reason.NOTHING_RUNS, "nothing runs on this target", Exit.NOTHING_RUNS)
        if options.plan_only:
            if options.as_json:
                output.emit_json(output.plan_json(plan))
            else:
                for line in output.plan_lines(plan):
                    output.say(line)
            return Exit.OK
        restart.require_confirmed(plan, confirmed=options.yes)
        accepted = await engine.execute(plan)
        store.save_run(accepted.run_id, name)
        if options.detach:
            return restart.report_accepted(name, accepted, as_json=options.as_json)
        found, judged = await follow.until_outcome(
            engine,
            "free",
            # The stop of a hand-started run has a record of its own, which is never "the run" on the screen.
            run_id=None if plan.replaced_by_hand else accepted.run_id,
            deadline=deadline,
            progress=follow.Progress(quiet_before=True),
        )
        return follow.report(engine, found, judged, "free", as_json=options.as_json)
