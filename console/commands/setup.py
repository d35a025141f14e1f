"""Commands that open the screen or set something up: open, init, demo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from console.commands.looks import look_options, require_terminal
from console.commands.options import FaultName, Words, choose, target_options
from console.reasons import ConsoleError


@click.command("open")
@click.argument("target", required=False)
@target_options
@click.option("--read-only", is_flag=True, help="Watch only: nothing can be started or stopped.")
@look_options
def open_(target: str | None, read_only: bool, ascii_only: bool, light: bool, **options: Any) -> int:
    """Open the terminal console on TARGET (the default command)."""
    from console import configfile, tui
    from console.configeditor import ConfigEntry

    config_path = options["config_path"]
    if target is None and options["host"] is None and tui.no_config_yet(config_path):
        require_terminal("dflash-console init HOST")
        return tui.run_without_config(ascii_only=ascii_only, light=light)
    try:
        name, chosen = choose(target, options)
    except ConsoleError as error:
        if target is not None and (meant := _command_like(target)):
            raise click.UsageError(f"No such command or target {target!r}. Did you mean {meant!r}?") from error
        raise
    require_terminal(f"dflash-console status {name}")
    entry = ConfigEntry(config_path or configfile.default_path(), name)
    return tui.run(name, chosen, read_only=read_only, ascii_only=ascii_only, light=light, entry=entry)


def _command_like(word: str) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(word, _command_names(), n=1, cutoff=0.7)), None)


def _command_names() -> list[str]:
    group = click.get_current_context().find_root().command
    return list(group.commands) if isinstance(group, click.Group) else []


@click.command()
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


@click.command()
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
@look_options
def demo(**options: Any) -> int:
    """Try everything on this machine: real SSH, agent and keeper; simulated trainer and GPUs.

    \b
    --fault: a fault of the trainer strikes the first run. A fault of run.sh (exec-refused, bad-interpreter) and
    link-cut come when the first run is up: it goes on, and the next restart (r) is refused before it is touched.
    With --serve nothing is started; the fault waits for the first restart from another terminal.
    Everything is removed at the end: processes and files.
    """
    from console.demo import command as work

    if options["serve"] is None and options["fault"] != "list":
        require_terminal("dflash-console demo --serve DIR")
    return work.run(**options)
