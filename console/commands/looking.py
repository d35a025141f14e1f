"""Commands that only look: status, logs, explain, doctor, diagnose."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from console.commands.options import Moment, choose, json_option, target_options, timeout_option


@click.command()
@click.argument("target", required=False)
@target_options
@click.option("--check", is_flag=True, help="Code 0 healthy, 5 nothing runs, 6 bad, 10-16 failed or ended.")
@timeout_option
@json_option
def status(target: str | None, **options: Any) -> int:
    """Say in a few lines what TARGET does, and how old that knowledge is."""
    from console.headless import status as work

    name, chosen = choose(target, options)
    return work.run(name, chosen, **options)


@click.command()
@click.argument("target", required=False)
@target_options
@click.option("-n", "--lines", type=click.IntRange(min=0), help="How many last lines: 50, with --since all.")
@click.option("-f", "--follow", is_flag=True, help="Go on printing what is written.")
@click.option("--errors", is_flag=True, help="The first error lines of the whole log, as FILE:LINE: text.")
@click.option("--grep", metavar="RE", help="The last lines of the whole log that match, as FILE:LINE: text.")
@click.option(
    "--since", "since", type=Moment(), help="Only what was written in the last 10m, since 21:30 or 2026-11-29T21:30."
)
@click.option("--run", metavar="RUN", help="The log of a past run, by name or id.")
@click.option("--no-steps", is_flag=True, help="Leave step lines out.")
@click.option("--context", type=click.IntRange(0, 100), default=0, help="Lines around each that was found.")
@click.option(
    "--max-bytes",
    type=click.IntRange(min=1),
    help="Print no more than this: the newest lines that fit, of --errors the first; stderr says what was left out.",
)
@timeout_option
def logs(target: str | None, **options: Any) -> int:
    """Print the end of the current run's log, or what is asked for of the whole file; control characters as text.

    \b
    --grep is a regular expression where it has signs of one; small letters match capitals, too.
    Where not one line fits into --max-bytes its end is printed, or its start
    where that is FILE:LINE.
    """
    from console.headless import loglines
    from console.headless import logs as work

    if options["errors"] and options["grep"]:
        raise click.UsageError("--errors and --grep exclude each other")
    bounded = options["run"] or options["since"] is not None or options["context"] or options["max_bytes"]
    if options["follow"] and bounded:
        raise click.UsageError("-f goes with --errors, --grep and --no-steps only")
    fields = ("errors", "grep", "since", "run", "no_steps", "context", "max_bytes")
    if options["lines"] is None:
        options["lines"] = 50 if options["since"] is None or options["errors"] or options["grep"] else sys.maxsize
    wanted = loglines.Wanted(**{field: options.pop(field) for field in fields})
    name, chosen = choose(target, options)
    return work.run(name, chosen, wanted=wanted, **options)


@click.command()
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True))
@click.option("--exit", "exit_status", type=int, help="Exit status of its process, where known.")
@click.option("--signal", help="Signal that ended its process, where known: SIGKILL, KILL or 9.")
@click.option("--list", "list_all", is_flag=True, help="Print every reason there is, with severity and title.")
@json_option
def explain(file: str | None, exit_status: int | None, signal: str | None, list_all: bool, as_json: bool) -> int:
    """Say what is wrong with a run by its log FILE ('-' is stdin), with the lines that prove it."""
    from console.headless import explain as work

    if list_all:
        return work.list_all(as_json=as_json)
    if file is None:
        raise click.UsageError("Missing argument 'FILE'.")
    if signal is not None and work.signal_number(signal) is None:
        raise click.UsageError(f"--signal {signal!r}: no such signal")
    try:
        return work.run(file, exit_status=exit_status, signal=signal, as_json=as_json)
    except BrokenPipeError:
        raise  # of the answer
    except OSError as exc:
        raise click.FileError(file, exc.strerror) from exc


@click.command()
@click.argument("target", required=False)
@target_options
@json_option
def doctor(target: str | None, **options: Any) -> int:
    """Look at everything on the way to TARGET and there, one line a check; touch nothing.

    \b
    Lines begin with ok, warn or fail; with ? where a failure before keeps it from being known.
    Exit code: 0 all ok, 6 a warning, else the first failure's: 30 link, 31 container, 3 the host.
    """
    from console.headless import doctor as work

    name, chosen = choose(target, options)
    return work.run(name, chosen, **options)


@click.command()
@click.argument("target", required=False)
@target_options
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write (default: a new one).",
)
@json_option
def diagnose(target: str | None, **options: Any) -> int:
    """Save what a hung run can tell into one file, before it is restarted; the run is not touched.

    Processes with state, wait channel, kernel and Python stacks (py-spy, where it is on the host), open files, GPUs,
    kernel log, the log's end, the run's records. Secrets are taken out as far as they can be recognised.
    """
    from console.headless import diagnose as work

    name, chosen = choose(target, options)
    return work.run(name, chosen, **options)
