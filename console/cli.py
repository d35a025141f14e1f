"""The command line: options and help. The work is done in `console.headless` and `console.ui`.

Heavy imports (asyncssh, textual) happen inside the commands, so that `--help` and a typing mistake answer at once.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from console import __version__
from console.reasons import ConsoleError, Exit, Reason

if TYPE_CHECKING:
    from console.config import Target
    from console.model import Overrides

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
JSON = "--json"
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
WAITABLE = ("accepted", "spawned", "cuda", "stepping", "checkpoint", "exit", "free")


@dataclass(slots=True)
class Called:
    """What `main` must know of a command that it has to report the failure of."""

    as_json: bool = False
    target: str | None = None
    way: str = ""
    """The flags that lead to the target, for the commands that we advise: ` --config /x/config.toml`."""


class Wanted(click.ParamType[str]):
    """What to wait for: a word, or `step=300`."""

    name = "|".join((*WAITABLE, "step=N"))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        word, _, number = value.partition("=")
        if value not in WAITABLE and not (word == "step" and number.isascii() and number.isdigit()):
            self.fail(f"{value!r} is not one of {', '.join(WAITABLE)}, step=N", param, ctx)
        return str(value)


class FaultName(click.ParamType[str]):
    """A fault of the demo, with its argument: `stall:5`; `list` prints them."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from console.demo import faults

        try:
            if value != "list":
                faults.parse(value)
        except ValueError as exc:
            self.fail(str(exc), param, ctx)
        return str(value)


class Seconds(click.ParamType[float]):
    """`15`, `15s`, `2m` or `1h`: seconds as a float."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        number = value.rstrip("smhd")
        unit = value[len(number) :] or "s"
        try:
            seconds = float(number) * _UNITS_S[unit]
        except (ValueError, KeyError):
            self.fail(f"{value!r} is no duration: expected 15, 15s, 2m or 1h", param, ctx)
        if seconds < 0:
            self.fail(f"{value!r} is negative", param, ctx)
        return seconds


class Words(click.ParamType[list[str]]):
    """A command line in one argument, split as a shell would: `--exec 'pct exec 200 --'`."""

    name = "words"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        import shlex

        if isinstance(value, list):
            return value
        try:
            return shlex.split(value)
        except ValueError as exc:
            self.fail(f"{value!r} can't be split into words: {exc}", param, ctx)


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


def _options(*options: Callable[..., Any]) -> Callable[..., Any]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


_FLAG_FIELDS = ("host", "user", "port", "jump", "identity", "known_hosts", "exec", "python", "state_dir")
_RUN_FIELDS = ("command", "cwd", "log", "match", "cache", "gpus")

target_options = _options(
    click.option("--config", "config_path", type=click.Path(path_type=Path), help="Config file to use."),
    click.option("--host", help="Address, a Host of ~/.ssh/config, or 'local'; with it no config file is needed."),
    click.option("--user", help="Login on the host."),
    click.option("--port", type=int, help="SSH port."),
    click.option("--jump", help="Jump host, such as ops@jump."),
    click.option("--identity", help="Private key file."),
    click.option("--known-hosts", help="known_hosts file to check host keys with."),
    click.option("--exec", type=Words(), help="Words that enter the container: 'pct exec 200 --'."),
    click.option("--python", help="Interpreter on the host (default python3)."),
    click.option("--state-dir", help="Directory for run records on the host."),
    click.option("--command", type=Words(), help="What to run: '/root/run.sh'."),
    click.option("--cwd", help="Directory to run it in."),
    click.option("--log", help="Log file template: '/workspace/train_{name}.log'."),
    click.option("--match", multiple=True, help="Argument by which a run started by hand is recognised."),
    click.option("--cache", multiple=True, help="Cache directory to set aside before each start."),
    click.option("--gpus", type=int, help="How many GPUs the run must open."),
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
timeout_option = click.option("--timeout", type=Seconds(), help="Give up after this long (15s, 2m); code 20.")


def _called() -> Called:
    return click.get_current_context().ensure_object(Called)


def _choose(name: str | None, options: dict[str, Any]) -> tuple[str, Target]:
    """Return the target that name and flags mean, taking the target's options out of `options`."""
    from console import configfile
    from console.config import Target

    called = _called()
    called.target, called.way = name, _way(options)
    path = options.pop("config_path") or configfile.default_path()
    flags = {key: value for key in _FLAG_FIELDS if (value := options.pop(key)) is not None}
    for key in _RUN_FIELDS:
        value = options.pop(key)
        if value is not None and value != ():
            flags |= {"cache": {"caches": value}, "gpus": {"gpus": {"expected": value}}}.get(key, {key: value})
    if "host" in flags and (name is None or not path.exists()):
        called.target = name or _adhoc_name(flags)
        configfile.check_name(called.target, "command line")
        return called.target, configfile.with_flags(Target(), flags)
    chosen, target = configfile.pick(configfile.load(path), name, path)
    called.target = chosen
    return chosen, configfile.with_flags(target, flags) if flags else target


def _way(options: dict[str, Any]) -> str:
    """Return the given flags that lead to the target, as they would be typed again."""
    import shlex

    words: list[str] = []
    for key in ("config_path", *_FLAG_FIELDS, *_RUN_FIELDS):
        flag, value = f"--{key.removesuffix('_path').replace('_', '-')}", options.get(key)
        for each in value if isinstance(value, tuple) else (value,):
            if each is not None:
                words += [flag, shlex.join(each) if isinstance(each, list) else str(each)]
    return f" {shlex.join(words)}" if words else ""


def _adhoc_name(flags: dict[str, Any]) -> str:
    """Name a target that is given by flags alone; the same flags give the same name, and so the same lock."""
    words = [flags["host"], *(word for word in flags.get("exec", []) if word.isdigit())]
    return "".join(char if char.isalnum() or char in "._-" else "-" for char in "-".join(words)).strip("-._") or "host"


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


@cli.command("open")
@click.argument("target", required=False)
@target_options
@click.option("--read-only", is_flag=True, help="Watch only: nothing can be started or stopped.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Plain ASCII instead of glyphs and line drawing.")
@click.option("--light", is_flag=True, help="Colours for a light terminal.")
def open_(target: str | None, read_only: bool, ascii_only: bool, light: bool, **options: Any) -> int:
    """Open the terminal console on TARGET (the default command)."""
    from console import tui

    config_path = options["config_path"]
    if target is None and options["host"] is None and tui.no_config_yet(config_path):
        _require_terminal("dflash-console init HOST")
        return tui.run_without_config(ascii_only=ascii_only, light=light)
    try:
        name, chosen = _choose(target, options)
    except ConsoleError as error:
        if target is not None and (meant := _command_like(target)):
            raise click.UsageError(f"No such command or target {target!r}. Did you mean {meant!r}?") from error
        raise
    _require_terminal(f"dflash-console status {name}")
    return tui.run(name, chosen, read_only=read_only, ascii_only=ascii_only, light=light)


def _require_terminal(instead: str) -> None:
    """Refuse to draw a screen where nobody sees it."""
    if not (sys.stdin and sys.stdout and sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(f"the screen needs a terminal. Without one use: {instead}")


def _command_like(word: str) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(word, list(cli.commands), n=1, cutoff=0.7)), None)


def _overrides(env: tuple[str, ...], unset: tuple[str, ...], args: tuple[str, ...], **rest: Any) -> Overrides:
    from console.model import Overrides

    pairs = {}
    for pair in env:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.UsageError(f"--env {pair!r}: expected NAME=VALUE")
        pairs[key] = value
    for text in (*pairs, *pairs.values(), *unset, *args, rest["name"] or "", rest["note"]):
        if text.encode(errors="ignore").decode() != text:
            raise click.UsageError(f"{text!r} is not valid UTF-8")
    name = rest["name"]
    if name is not None and (not name or "/" in name or name in (".", "..")):
        raise click.UsageError(f"--name {name!r}: expected a name without '/'")
    return Overrides(env=pairs, unset=unset, args=args, **rest)


@cli.command()
@click.argument("target", required=False)
@target_options
@click.option("--plan", "plan_only", is_flag=True, help="Print the plan; touch nothing.")
@click.option("--plan-id", help="Carry out the plan with this id, only if the world still is as planned.")
@click.option("--yes", is_flag=True, help="Confirm without asking.")
@click.option("--expect-run", metavar="RUN", help="Refuse (code 4) if any other run than RUN is there.")
@click.option("--detach", is_flag=True, help="Return when the keeper has taken the request.")
@click.option("--wait", "wait_for", type=Wanted(), help="Return when this is proven (default stepping).")
@timeout_option
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="Add to the environment, for this run.")
@click.option("--unset", multiple=True, metavar="NAME", help="Take out of the environment, for this run.")
@click.option("--arg", "args", multiple=True, help="Add an argument to the command, for this run.")
@click.option("--from", "from_run", metavar="RUN", help="Take command, directory and environment from this past run.")
@click.option("--name", help="Name of the run instead of the template's.")
@click.option("--note", default="", help="A note that is kept with the run.")
@click.option("--keep-cache", is_flag=True, help="Do not clear the cache.")
@json_option
def restart(target: str | None, **options: Any) -> int:
    """Replace what runs on TARGET by a new run, and prove that it runs."""
    from console.headless import restart as work

    name, chosen = _choose(target, options)
    keys = ("env", "unset", "args", "name", "note", "keep_cache")
    overrides = _overrides(**{key: options.pop(key) for key in keys})
    return work.run(name, chosen, overrides=overrides, way=_called().way, **options)


@cli.command()
@click.argument("run", required=False)
@click.option("--target", help="Target of the run, where it isn't known from its id.")
@target_options
@click.option("--for", "wanted", type=Wanted(), default="stepping", show_default=True, help="What to wait for.")
@timeout_option
@json_option
def wait(run: str | None, target: str | None, **options: Any) -> int:
    """Wait until RUN (an id, a name, or the current one) has reached a stage."""
    from console.headless import store
    from console.headless import wait as work

    target = target or (store.target_of_run(run) if run and options["host"] is None else None)
    name, chosen = _choose(target, options)
    return work.run(name, chosen, which=run, **options)


@cli.command()
@click.argument("target", required=False)
@target_options
@click.option("--plan", "plan_only", is_flag=True, help="Print what would be stopped; touch nothing.")
@click.option("--plan-id", help="Carry out the plan with this id, only if the world still is as planned.")
@click.option("--yes", is_flag=True, help="Confirm without asking.")
@click.option("--expect-run", metavar="RUN", help="Refuse (code 4) if any other run than RUN is there.")
@click.option("--detach", is_flag=True, help="Return when the request is taken.")
@timeout_option
@json_option
def stop(target: str | None, **options: Any) -> int:
    """Stop what runs on TARGET, and prove that it is gone."""
    from console.headless import stop as work

    name, chosen = _choose(target, options)
    return work.run(name, chosen, way=_called().way, **options)


@cli.command()
@click.argument("target", required=False)
@target_options
@click.option("--check", is_flag=True, help="Code 0 healthy, 5 nothing runs, 6 bad, 10-16 failed or ended.")
@timeout_option
@json_option
def status(target: str | None, **options: Any) -> int:
    """Say in a few lines what TARGET does, and how old that knowledge is."""
    from console.headless import status as work

    name, chosen = _choose(target, options)
    return work.run(name, chosen, **options)


@cli.command()
@click.argument("target", required=False)
@target_options
@click.option("-n", "--lines", type=click.IntRange(min=0), default=50, show_default=True, help="How many last lines.")
@click.option("-f", "--follow", is_flag=True, help="Go on printing what is written.")
@timeout_option
def logs(target: str | None, **options: Any) -> int:
    """Print the end of the current run's log, control characters shown as text."""
    from console.headless import logs as work

    name, chosen = _choose(target, options)
    return work.run(name, chosen, **options)


@cli.command()
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
    return work.run(file, exit_status=exit_status, signal=signal, as_json=as_json)


@cli.command()
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

    name, chosen = _choose(target, options)
    return work.run(name, chosen, **options)


@cli.command()
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

    name, chosen = _choose(target, options)
    return work.run(name, chosen, **options)


@cli.command()
@click.argument("host", required=False)
@click.option("--config", "config_path", type=click.Path(path_type=Path), help="File to write.")
@click.option("--name", help="Name of the target.")
@click.option("--user", help="Login on the host.")
@click.option("--port", type=int, help="SSH port.")
@click.option("--jump", help="Jump host, such as ops@jump.")
@click.option("--identity", help="Private key file.")
@click.option("--exec", type=Words(), help="Words that enter the container: 'pct exec 200 --'.")
@click.option("--command", type=Words(), help="What to run: '/root/run.sh'.")
@click.option("--log", help="Log file template.")
@click.option("--match", multiple=True, help="Argument by which a run started by hand is recognised.")
@click.option("--no-probe", is_flag=True, help="Do not connect to see whether the target answers.")
def init(host: str | None, **options: Any) -> int:
    """Write a commented config file for HOST; an existing file is never touched."""
    from console.headless import init as work

    return work.run(host, **options)


@cli.command()
@click.option("--fault", type=FaultName(), help="Start with this fault; 'list' prints them. See below.")
@click.option(
    "--serve", type=click.Path(path_type=Path, file_okay=False), help="Only serve the host; write DIR/config.toml."
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0.1, max=100.0),
    default=1.0,
    show_default=True,
    help="How many times as fast the simulated trainer loads and steps.",
)
@click.option("--ascii", "ascii_only", is_flag=True, help="Plain ASCII instead of glyphs and line drawing.")
@click.option("--light", is_flag=True, help="Colours for a light terminal.")
def demo(**options: Any) -> int:
    """Try everything on this machine: real SSH, agent and keeper; simulated trainer and GPUs.

    \b
    --fault: a fault of the trainer strikes the first run. A fault of run.sh (exec-refused, bad-interpreter) and
    link-cut come when the first run is up: it goes on, and the next restart (r) is refused before it is touched.
    With --serve nothing is started; the fault waits for the first restart from another terminal.
    Everything is removed at the end: processes and files.
    """
    from console.demo import command as work

    return work.run(**options)


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

    if called.as_json:
        output.emit_json(output.error_json(error, called.target))
    else:
        for line in output.error_lines(error):
            click.echo(line, err=not output.is_result(error))
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
    """Let the interpreter's last flush go nowhere: the reader of our pipe is gone."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
