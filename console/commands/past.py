"""Commands about runs over time: history, compare, metrics, watch."""

from __future__ import annotations

from typing import Any

import click

from console.commands.options import Seconds, choose, json_option, target_options, timeout_option


@click.command()
@click.argument("target", required=False)
@target_options
@click.option("-n", "--lines", type=click.IntRange(min=1), default=20, show_default=True, help="How many runs.")
@click.option(
    "--since", type=click.IntRange(min=0), metavar="SEQ", help="Only runs that changed after this seq; NDJSON."
)
@timeout_option
@click.option("--json", "as_json", is_flag=True, help="NDJSON, one run a line, newest first.")
def history(target: str | None, **options: Any) -> int:
    """List the runs of TARGET, newest first: how each ended, how fast it was, what was changed for it.

    Where the host can't be reached the runs that are known here are listed all the same, and the code is the link's.
    The logs of runs that ended while nobody watched are read first, four at a time; stderr names those that were not
    read yet, and their log_read is false in NDJSON: ask again.
    """
    from console.headless import history as work

    name, chosen = choose(target, options)
    return work.run(name, chosen, **options)


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("--target", help="Target of the runs.")
@target_options
@timeout_option
@json_option
def compare(a: str, b: str, target: str | None, **options: Any) -> int:
    """Compare the runs A and B (names or ids): rate with its noise, tokens, loss, launch, memory, settings.

    The noise is half the 95 % interval of the difference of the steady rates (last 10 minutes without warm-up and
    checkpoint steps), from the scatter of stretches of steps, since step times hang together: of runs that don't differ
    about 5 of 100 comparisons lie beyond it, up to 10 where the rate wanders for dozens of steps.
    """
    from console.headless import compare as work

    name, chosen = choose(target, options)
    return work.run(name, chosen, a=a, b=b, **options)


class _Until(click.ParamType[tuple[str, ...]]):
    """Words joined by commas: `stepping,failed,ended`."""

    name = "words"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        from console.headless.watch import UNTIL

        if isinstance(value, tuple):
            return value
        words = tuple(word for word in value.split(",") if word)
        if unknown := [word for word in words if word not in UNTIL]:
            self.fail(f"{unknown[0]!r} is not one of {', '.join(UNTIL)}", param, ctx)
        return words


@click.command()
@click.argument("target", required=False)
@target_options
@click.option(
    "--until", type=_Until(), default=(), help="End when one of these holds: stepping,failed,ended,stalled,free."
)
@click.option("--for", "for_s", type=Seconds(), help="End after this long (18s, 5m); code 20.")
@click.option(
    "--after", type=click.IntRange(min=0), metavar="SEQ", help="Go on after the watch that ended with this seq."
)
@click.option("--every", "every_s", type=Seconds(), default=1.0, help="Tell a step at most so often (default 1s).")
def watch(target: str | None, **options: Any) -> int:
    """Print what happens on TARGET as NDJSON: a snapshot, then events, a heartbeat every 5 s, at last an end line.

    Exit code: 0 what --until hoped for, 10-15 failed or ended, 20 the time of --for has passed, 130 interrupted.
    """
    from console.headless import watch as work

    name, chosen = choose(target, options)
    return work.run(name, chosen, **options)


@click.command()
@click.argument("target", required=False)
@target_options
@click.option("--run", "which", metavar="RUN", help="A run of before, by name or id, instead of the current one.")
@timeout_option
@click.option("--csv", "as_csv", is_flag=True, help="One point a row.")
@json_option
def metrics(target: str | None, as_csv: bool, as_json: bool, **options: Any) -> int:
    """Print the curves of a run: tok/s, loss, queue, and per role memory, load and power.

    Curves are means of stretches of time since the first step, as the ledger keeps them.
    """
    from console.headless import metrics as work

    if as_csv and as_json:
        raise click.UsageError("--csv and --json: choose one")
    name, chosen = choose(target, options)
    return work.run(name, chosen, form="csv" if as_csv else "json" if as_json else "table", **options)
