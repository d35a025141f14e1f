"""Our themes: dark, light, and one of ANSI names for terminals of 16 colours or none. Colours stand nowhere else.

Every variable of ours has a default, so that the stylesheet also parses under a theme that knows nothing of us.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import Theme

DARK, LIGHT, ANSI = "dflash-dark", "dflash-light", "dflash-16"

_DARK = {
    "fact": "#c9d1d9", "strong": "#f0f6fc", "dim": "#9aa4af", "faint": "#747d88", "rule": "#39424e",
    "ok": "#56c271", "warn": "#e2b341", "fail": "#f0524d", "busy": "#5aa9f0",
    "role-target": "#5aa9f0", "role-drafter": "#c792ea",
    "fail-bg": "#b3261e", "warn-bg": "#8a6100", "busy-bg": "#11365c", "link-bg": "#3d4450", "on-fill": "#f0f6fc",
    "ground": "#0e1116", "band": "#141a20", "dialog": "#171c23", "shade": "#0e1116 70%",
    "keep-bg": "#c9d1d9", "keep-fg": "#0e1116", "match-bg": "#5a4300", "match-fg": "#f0f6fc",
}  # fmt: skip
_LIGHT = {
    "fact": "#24292f", "strong": "#0b0f14", "dim": "#4b535d", "faint": "#68717c", "rule": "#c3cad2",
    "ok": "#1a6f37", "warn": "#7d5600", "fail": "#b3261e", "busy": "#0b5cad",
    "role-target": "#0b5cad", "role-drafter": "#7b3fb0",
    "fail-bg": "#b3261e", "warn-bg": "#8a6100", "busy-bg": "#11365c", "link-bg": "#3d4450", "on-fill": "#ffffff",
    "ground": "#fbfcfd", "band": "#eef1f4", "dialog": "#ffffff", "shade": "#fbfcfd 70%",
    "keep-bg": "#24292f", "keep-fg": "#ffffff", "match-bg": "#ffe08a", "match-fg": "#0b0f14",
}  # fmt: skip
_ANSI = {
    "fact": "ansi_default", "strong": "ansi_bright_white", "dim": "ansi_white", "faint": "ansi_bright_black",
    "rule": "ansi_bright_black", "ok": "ansi_green", "warn": "ansi_yellow", "fail": "ansi_bright_red",
    "busy": "ansi_bright_cyan", "role-target": "ansi_cyan", "role-drafter": "ansi_magenta",
    "fail-bg": "ansi_red", "warn-bg": "ansi_yellow", "busy-bg": "ansi_blue", "link-bg": "ansi_bright_black",
    "on-fill": "ansi_bright_white", "ground": "ansi_default", "band": "ansi_default", "dialog": "ansi_black",
    "shade": "ansi_default", "keep-bg": "ansi_white", "keep-fg": "ansi_black", "match-bg": "ansi_yellow",
    "match-fg": "ansi_black",
}  # fmt: skip

DEFAULTS: Mapping[str, str] = _DARK


def _theme(name: str, colours: Mapping[str, str], *, dark: bool, ansi: bool = False) -> Theme:
    return Theme(
        name=name, dark=dark, ansi=ansi, primary=colours["busy"], secondary=colours["role-drafter"],
        warning=colours["warn"], error=colours["fail"], success=colours["ok"], accent=colours["busy"],
        foreground=colours["fact"], background=colours["ground"], surface=colours["dialog"], panel=colours["band"],
        variables={
            **colours,
            "input-cursor-background": colours["fact"],
            "input-cursor-foreground": "ansi_black" if ansi else colours["ground"],
            "input-selection-background": colours["match-bg"],
            "screen-selection-background": colours["match-bg"],
            "block-cursor-background": colours["busy-bg"],
            "block-cursor-foreground": colours["on-fill"],
            "border": colours["busy"],
            "border-blurred": colours["rule"],
            # Textual's own widgets ask for these under every ANSI theme.
            **({"ansi-background": "ansi_black", "ansi-foreground": "ansi_white"} if ansi else {}),
        },
    )  # fmt: skip


THEMES = (
    _theme(DARK, _DARK, dark=True),
    _theme(LIGHT, _LIGHT, dark=False),
    _theme(ANSI, _ANSI, dark=True, ansi=True),
)


def choose_theme(environ: Mapping[str, str], *, light: bool = False) -> str:
    """Return the theme for a terminal: ANSI names where only 16 colours can be counted on, or none is wanted.

    `screen`, plain `xterm` and `linux` are what rich takes for 16 colours: blue, violet and the shades would turn grey.
    """
    if "NO_COLOR" in environ:
        return ANSI
    term = environ.get("TERM", "")
    rich_colours = environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or "256" in term or "direct" in term
    if term in ("screen", "xterm", "linux", "vt100", "vt220", "ansi", "dumb") and not rich_colours:
        return ANSI
    return LIGHT if light else DARK
