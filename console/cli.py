"""The command line's entry: the group of commands, and every error as one line of advice and an exit code.

The commands stand in `console.commands`, the work is done in `console.headless` and `console.ui`.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import traceback
from types import FrameType
from typing import Any

import click

from console import __version__
from console.commands import logformats, looking, past, replay, runs, setup
from console.commands.options import JSON, Called
from console.endsignals import handlers
from console.reasons import ConsoleError, Exit, Interrupted, Reason

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
        _ends_with_a_word()


for _command in _COMMANDS:
    cli.add_command(_command)


def _ends_with_a_word() -> None:
    """Let a signal that comes before anything is known of the host end a command with a line, too."""
    for number, handler in handlers().items():
        if handler is signal.SIG_DFL:  # else it is ignored, as nohup has it
            signal.signal(number, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise Interrupted(number, "the run goes on, if there is one: none was heard of yet", {})


def mend_streams() -> None:
    """Put something in the place of a standard stream that was closed, as by `>&-`.

    Else a file of ours would take its number, and Python would drop what is printed to it without an error, or print
    progress among the results. What is written to a closed stdout fails, as it should; so does reading from stdin.
    """
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest number that is free, which is this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  it stays open
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115  it stays open
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115  it stays open


def main(arguments: list[str] | None = None) -> None:
    """Entry point: run, turn every error into one line of advice and an exit code."""
    mend_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that isn't UTF-8 must not end a command
    words = sys.argv[1:] if arguments is None else arguments
    called = Called(as_json=JSON in words[: words.index("--")] if "--" in words else JSON in words)
    try:
        result = cli.main(args=words, prog_name="dflash-console", standalone_mode=False, obj=called)
        code = result if isinstance(result, int) else Exit.OK
        sys.stdout.flush()
    except Exception as exc:  # noqa: BLE001  the last resort: no traceback on the screen, all of it in the file
        code = _report(exc, called)
    finally:
        for number, handler in handlers().items():
            if handler is _end:  # what a screen or the demo has set up for their end holds to the end
                signal.signal(number, signal.SIG_DFL)
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
            return _interrupted(Interrupted(signal.SIGINT, "the run goes on", {}), called)
        case Interrupted():
            return _interrupted(exc, called)
        case click.ClickException():
            return _usage(exc, called)
        case ConsoleError():
            return _failed(exc, called)
        case OSError() if _is_of_printing(exc):
            return _failed(ConsoleError(Reason.OUTPUT_UNUSABLE, f"stdout: {exc.strerror}"), called)
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


def _interrupted(ended: Interrupted, called: Called) -> int:
    from console.headless import output

    try:
        click.echo(f"{output.interruption_word(ended.number)}: {ended.detail}", err=True)
        if called.as_json:
            output.emit_json(output.interrupted_json(ended, called.target))
    except (OSError, ConsoleError):  # a terminal that has hung up
        _close_stdout_quietly()
    return ended.exit_code


def _is_of_printing(exc: OSError) -> bool:
    """Whether it was the printing of a help text or the like that failed, which no code of ours does."""
    frames = [frame for frame, _ in traceback.walk_tb(exc.__traceback__)]
    return bool(frames) and frames[-1].f_code in (click.echo.__code__, main.__code__)


def _close_stdout_quietly() -> None:
    """Let the interpreter's last flush go nowhere: nobody can take it any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
