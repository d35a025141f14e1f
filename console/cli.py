"""The command line's entry: the group of commands, and every error as one line of advice and an exit code.

The commands stand in `console.commands`, the work is done in `console.headless` and `console.ui`.
"""

from __future__ import annotations

import gc
import io
import sys
from typing import Any

import click

from console import __version__
from console.commands import logformats, looking, past, replay, runs, setup
from console.commands.options import JSON, Called
from console.reasons import ConsoleError, Exit, Reason

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
_SCREENS = ("open", "replay", "demo")
"""They turn garbage collection on again when the first picture is there."""
_COMMANDS = (
    setup.open_, runs.restart, runs.wait, runs.stop, looking.status, looking.logs, looking.explain, looking.doctor,
    looking.diagnose, replay.replay, logformats.formats, past.history, past.compare, past.metrics, past.watch,
    setup.init, setup.demo,
)  # fmt: skip


class ReaderGone(Exception):
    """Whoever read our output has closed the pipe."""


class TargetGroup(click.Group):
    """`dflash-console NAME` opens the target NAME unless NAME is a command."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as exc:
            raise ReaderGone from exc  # click itself would end with 1, which is our code for a bug

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            return "open", self.get_command(ctx, "open"), args
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"-h", "--help", "--version"}
        if not args or (args[0].startswith("-") and args[0] not in own):
            args = ["open", *args]
        return super().parse_args(ctx, args)


@click.group(cls=TargetGroup, context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="dflash-console")
def cli() -> None:
    """Restart, watch and trust long training runs on remote GPU hosts.

    \b
    dflash-console [TARGET]      the terminal console
    dflash-console demo          the same on this machine, with a simulated trainer

    Results go to stdout, progress to stderr. Exit codes: 0 reached, 2 usage or not confirmed, 3 refused, 4 locked,
    5 nothing runs, 6 unhealthy, 10-14 failed in the launch, 15 ended, 16 replaced, 20 timeout, 30 link, 31 container.
    """
    from console.bugs import log_to_file

    log_to_file()
    if click.get_current_context().invoked_subcommand not in _SCREENS:
        gc.enable()


for _command in _COMMANDS:
    cli.add_command(_command)


def main(arguments: list[str] | None = None) -> None:
    """Entry point: run, turn every error into one line of advice and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that isn't UTF-8 must not end a command
    words = sys.argv[1:] if arguments is None else arguments
    called = Called(as_json=JSON in words[: words.index("--")] if "--" in words else JSON in words)
    try:
        result = cli.main(args=words, prog_name="dflash-console", standalone_mode=False, obj=called)
        code = result if isinstance(result, int) else Exit.OK
        if sys.stdout is not None:
            sys.stdout.flush()
    except Exception as exc:  # noqa: BLE001  the last resort: no traceback on the screen, all of it in the file
        code = _report(exc, called)
    sys.exit(code)


_SIGPIPE = 128 + 13  # as a shell shows it; never 0, since what was asked for isn't proven


def _report(exc: Exception, called: Called) -> int:
    """Say what went wrong, on stdout where it is the answer; return the exit code."""
    try:
        return _say(exc, called)
    except BrokenPipeError:
        _close_stdout_quietly()
        return _SIGPIPE
    except ConsoleError as lost:  # of the saying itself
        return _failed(lost, called)


def _say(exc: Exception, called: Called) -> int:
    match exc:
        case BrokenPipeError() | ReaderGone():
            _close_stdout_quietly()
            return _SIGPIPE
        case click.exceptions.Exit():
            return exc.exit_code
        case click.Abort():
            return _interrupted(called)
        case click.ClickException():
            return _usage(exc, called)
        case ConsoleError():
            return _failed(exc, called)
        case _:
            from console.bugs import report_bug

            return _failed(ConsoleError(Reason.BUG, report_bug(exc), Exit.BUG), called)


def _failed(error: ConsoleError, called: Called) -> int:
    from console.headless import output

    if error.reason is Reason.OUTPUT_UNUSABLE:
        _close_stdout_quietly()
        called.as_json = False
    if called.as_json:
        output.emit_json(output.error_json(error, called.target))
    else:
        for line in output.error_lines(error):
            if output.is_result(error):
                output.say(line)
            else:
                click.echo(line, err=True)
    return error.exit_code


def _usage(error: click.ClickException, called: Called) -> int:
    from console.headless import output

    error.show()
    if called.as_json:
        output.emit_json(output.usage_json(error.format_message(), called.target))
    return Exit.USAGE


def _interrupted(called: Called) -> int:
    from console.headless import output

    click.echo("interrupted: the run goes on", err=True)
    if called.as_json:
        output.emit_json(output.interrupted_json(called.target))
    return Exit.INTERRUPTED


def _close_stdout_quietly() -> None:
    """Let the interpreter's last flush go nowhere: nobody can take it any more."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
