"""The command palette: the actions that the situation offers, found by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from console.ui.actions import key_name, offered
from console.ui.actiontable import Action
from console.ui.screens.base import ActionScreen


@dataclass(frozen=True, slots=True)
class ExtraCommand:
    """A palette entry that isn't part of the console itself: the demo's faults."""

    title: str
    help: str
    run: Callable[[], str]
    """Does it and returns what to tell the operator."""


class Commands(Provider):
    """Offers what the screen below the palette offers, and behind it what whoever opened the app has added.

    One provider for both: those of several come in any order.
    """

    def _actions(self) -> list[tuple[Action, str]]:
        screen = self.screen
        if not isinstance(screen, ActionScreen):
            return []
        situation = screen.situation
        return [(action, action.label_in(situation)) for action in offered(situation) if action.id != "palette"]

    def _extra(self) -> tuple[ExtraCommand, ...]:
        return getattr(self.app, "extra", ())

    async def discover(self) -> Hits:
        for action, label in self._actions():
            yield DiscoveryHit(self._title(action, label), partial(self._act, action.id), help=action.help)
        for command in self._extra():
            yield DiscoveryHit(command.title, partial(self._run, command), help=command.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action, label in self._actions():
            score = max(matcher.match(label), matcher.match(f"{label} {action.help}") * 0.6)
            if score > 0:
                yield Hit(score, self._title(action, label), partial(self._act, action.id), help=action.help)
        for command in self._extra():
            score = max(matcher.match(command.title), matcher.match(f"{command.title} {command.help}") * 0.6)
            if score > 0:
                yield Hit(score, command.title, partial(self._run, command), help=command.help)

    @staticmethod
    def _title(action: Action, label: str) -> str:
        return f"{label}  {key_name(action.keys[0])}"

    async def _act(self, action_id: str) -> None:
        if not self.app.is_running:
            return  # chosen as the console was told to end: its screens are being taken apart
        await cast(ActionScreen, self.screen).run_action(f"act('{action_id}')")

    def _run(self, command: ExtraCommand) -> None:
        self.app.clear_notifications()
        self.app.notify(command.run(), timeout=4.0, markup=False)
