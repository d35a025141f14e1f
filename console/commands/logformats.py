"""The command that shows how a log is read: formats."""

from __future__ import annotations

import click

from console.commands.options import json_option


@click.command()
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True))
@click.option("--format", "chosen", default="auto", help="A format's name, a regex, or a format file.")
@click.option("--tokens-per-step", type=click.IntRange(min=1), help="Derive tokens/s where the log states none.")
@json_option
def formats(file: str | None, chosen: str, tokens_per_step: int | None, as_json: bool) -> int:
    """Show what is recognised in the log FILE ('-' is stdin), line by line, and which format it has.

    \b
    KIND is step, eval, ckpt, header or other; SCOPE says whose tokens/s those are. Without FILE: the known formats.
    """
    from console.headless import formats as work

    return work.run(file, chosen=chosen, tokens_per_step=tokens_per_step, as_json=as_json)
