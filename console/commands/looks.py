"""What the commands that draw a screen have in common: how it looks, and whether there is a terminal to draw it on."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import click

from console.commands.options import several

_NO_LOCALE = ("C", "POSIX")

look_options = several(
    click.option(
        "--ascii",
        "ascii_only",
        is_flag=True,
        callback=lambda _context, _option, is_asked: is_asked or speaks_ascii_only(os.environ, _encoding()),
        help="Plain ASCII instead of glyphs and line drawing; by itself where the locale knows no more (LANG=C).",
    ),
    click.option("--light", is_flag=True, help="Colours for a light terminal."),
)


def require_terminal(instead: str) -> None:
    """Refuse to draw a screen where nobody sees it."""
    without = f"Without one use: {instead}"
    if not (sys.stdin and sys.stdout and sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(f"the screen needs a terminal. {without}")
    if os.environ.get("TERM", "") == "dumb":
        raise click.UsageError(f"the screen needs a terminal that can place text, which TERM=dumb can't. {without}")


def speaks_ascii_only(environ: Mapping[str, str], encoding: str) -> bool:
    """Whether a terminal of this locale can't be relied on for more than ASCII.

    None at all says nothing: most terminals that name no locale show UTF-8 well.
    """
    if encoding.lower().replace("-", "") != "utf8":
        return True
    whole, letters, language = (environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    # Python itself says C.UTF-8 for the letters where the language is C.
    return whole in _NO_LOCALE or (not whole and language in _NO_LOCALE and letters in ("", "C.UTF-8", *_NO_LOCALE))


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"
