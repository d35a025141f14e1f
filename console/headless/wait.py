"""`wait`: until a run has reached a stage, or can't any more."""

from __future__ import annotations

from console.config import Target
from console.engine import Engine
from console.headless import earlier, follow, output, report
from console.headless.interruption import carried_out
from console.headless.session import deadline_after, opened, settled
from console.history.comparing import compare
from console.model import Snapshot
from console.reasons import ConsoleError, Exit, Reason


def run(name: str, target: Target, *, which: str | None, wanted: str, timeout: float | None, as_json: bool) -> int:
    """Carry the command out; return its exit code."""
    return carried_out(_wait(name, target, which, wanted, timeout, as_json=as_json))


async def _wait(
    name: str, target: Target, which: str | None, wanted: str, timeout: float | None, *, as_json: bool
) -> int:
    deadline = deadline_after(timeout)
    async with opened(name, target) as engine:
        await settled(engine, deadline)
        run_id = await _run_id(engine, which)
        found, judged = await follow.until_outcome(
            engine, wanted, run_id=run_id, deadline=deadline, progress=follow.Progress(quiet_before=True)
        )
        ending = await earlier.ending(engine, found, judged, wanted, run_id=run_id, deadline=deadline)
        is_steady = wanted == "steady" and ending.judged.word == "OK"
        steady = await _steady(engine, ending.snapshot) if is_steady else None
        return report.report(ending, wanted, steady=steady, as_json=as_json)


async def _steady(engine: Engine, snapshot: Snapshot) -> report.Steady:
    """Return the steady rate against the baseline, with the noise where the baseline is a run with kept rates."""
    rate, run = snapshot.progress.rate, snapshot.run
    noise_pct = significant = None
    baseline = engine.target.metrics.baseline
    if isinstance(baseline, str) and run is not None and run.id is not None:
        try:
            found = compare(await engine.archive.run(run.id), await engine.archive.run(baseline)).rate
        except ConsoleError:
            found = None  # the figures stand without it
        noise_pct = found.noise_pct if found is not None else None
        significant = found.significant if found is not None else None
    words = [f"OK steady {output.one_line(run.name if run is not None else '?')}"]
    words.append(f"{rate.steady or 0.0:.0f} +-{rate.mad or 0.0:.0f} tok/s n={rate.n}")
    if rate.delta_pct is not None:
        words.append(f"vs {output.one_line(rate.baseline_name)} {rate.delta_pct:+.1f}%")
        if noise_pct is not None:
            words.append(f"(noise {noise_pct:.1f}%)")
    elif rate.unlike:
        words.append(f"(not compared: {output.one_line(rate.unlike)})")
    fields = {
        "steady": rate.steady,
        "mad": rate.mad,
        "n": rate.n,
        "scope": rate.scope,
        "baseline": rate.baseline_name or None,
        "delta_pct": output.rounded(rate.delta_pct, 2),
        "noise_pct": output.rounded(noise_pct, 2),
        "significant": significant,
    }
    return report.Steady(" ".join(words), fields)


async def _run_id(engine: Engine, which: str | None) -> str | None:
    """Return the id that `which` (an id, a name, or None for the run that is there) means.

    Raises: ConsoleError; UNEXPECTED_RUN for a run that this target has never heard of: it was not replaced.
    """
    run = engine.snapshot.run
    if which is None:
        if run is None:
            raise ConsoleError(Reason.NOTHING_RUNS, "no run is known on this target", Exit.NOTHING_RUNS)
        return run.id
    if run and which in (run.id, run.name):
        return run.id
    past = next((each for each, name in reversed(engine.past_runs.items()) if which in (each, name)), None)
    if past is not None:
        return past
    try:  # the host tells of its newest runs only
        row, _ = await engine.archive.run(which)
    except ConsoleError as error:
        raise follow.unexpected(f"no run {which} is known on this target", run) from error
    return row.id
