"""Commands about runs of before: history, compare."""

from __future__ import annotations

from typing import Any

import click

from console.commands.options import choose, json_option, target_options, timeout_option


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
    about 5 of 100 comparisons lie beyond it.
    """
    from console.headless import compare as work

    name, chosen = choose(target, options)
    return work.run(name, chosen, a=a, b=b, **options)
