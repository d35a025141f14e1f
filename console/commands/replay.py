"""The command that plays a run back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from console.commands.looks import look_options, require_terminal
from console.commands.options import choose, json_option, target_options, timeout_option


@click.command()
@click.argument("what", metavar="RUN|FILE")
@click.option("--target", help="Target of the run.")
@target_options
@click.option("--export", "path", type=click.Path(path_type=Path, dir_okay=False), help="Write it into this new file.")
@click.option("--speed", type=click.FloatRange(0.1, 64), default=1.0, show_default=True, help="Times real time.")
@look_options
@timeout_option
@json_option
def replay(what: str, target: str | None, **options: Any) -> int:
    """Play the recording of a RUN (its name or id), or of a FILE that --export wrote, in the same screens.

    \b
    space pauses, ( and ) step by 10 s, - and + change the speed, { and } go to the stage before and after.

    The keeper records each run: stages, processes and GPUs each second of the last ten minutes, coarser before that.
    With --export secrets are taken out as far as they can be recognised; nothing is shown.
    """
    from console.headless import replay as work

    path, speed = options.pop("path"), options.pop("speed")
    ascii_only, light = options.pop("ascii_only"), options.pop("light")
    as_json, timeout_s = options.pop("as_json"), options.pop("timeout")
    if path is None:
        require_terminal(f"dflash-console replay {what} --export FILE")
    env: dict[str, str] = {}
    if Path(what).is_file():
        tape = work.from_file(Path(what))
    else:
        name, chosen = choose(target, options)
        tape, env = work.from_host(name, chosen, what, timeout_s), chosen.env
    if path is not None:
        return work.export(tape, path, env=env, as_json=as_json)
    return work.play(tape, speed=speed, ascii_only=ascii_only, light=light)
