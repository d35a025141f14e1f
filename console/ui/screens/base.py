"""What screens with actions share: bindings from the registry, and actions only where the situation offers them."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.reactive import var
from textual.screen import Screen
from textual.widget import Widget

from console.ui.actions import bindings, by_id, is_offered
from console.ui.situation import Situation


class ActionScreen(Screen[None]):
    """A screen whose keys come from the registry; `act_<id>` does what an action says."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]
    focused = var[Widget | None](None)
    """Textual paints a screen whole when its focus moves. What has the focus restyles itself, and nothing else of ours
    looks different."""

    @property
    def situation(self) -> Situation:
        raise NotImplementedError

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action != "act":
            return super().check_action(action, parameters)
        return is_offered(by_id(str(parameters[0])), self.situation)

    def action_act(self, action_id: str) -> None:
        """Run an action by its id. The palette comes here, too, so the situation is asked again."""
        if is_offered(by_id(action_id), self.situation):
            getattr(self, f"act_{action_id}")()
