"""Which screen is in front, once it is whole: on the stack it stands before it has its widgets, and keys are lost."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.screen import Screen

from console.ui.screens.pick import PickScreen
from console.ui.screens.prompt import PromptScreen


def is_there(app: App[Any], kind: type[Screen[Any]]) -> bool:
    """Whether a screen of this kind is in front, has its widgets, and takes what is typed."""
    screen = app.screen
    takes_keys = not isinstance(screen, PromptScreen | PickScreen) or app.focused is not None
    return isinstance(screen, kind) and screen.is_mounted and takes_keys
