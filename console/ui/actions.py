"""The one registry of actions: bindings, footer, help and palette are all made from it.

An action that a situation doesn't offer is bound to nothing, shown nowhere and can't be found: read-only takes away, it
doesn't grey out. What an action does stands in the screen, as `act_<id>`; the actions themselves in `actiontable`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from textual.binding import Binding

from console.ui.actiontable import ACTIONS, Action
from console.ui.situation import Face, Situation

_OF_THE_LIVE_RUN = frozenset({"diagnose", "watch", "configure", "baseline", "choose_log"})
"""Not offered over a run of before, as all that starts or stops something."""
_BY_ID = {action.id: action for action in ACTIONS}
_KEY_NAMES = {
    "ampersand": "&",
    "full_stop": ".",
    "greater_than_sign": ">",
    "slash": "/",
    "question_mark": "?",
    "colon": ":",
    "up": "↑",
    "down": "↓",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "enter": "⏎",
    "left_parenthesis": "(",
    "right_parenthesis": ")",
    "minus": "-",
    "plus": "+",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
}


def key_name(key: str) -> str:
    return _KEY_NAMES.get(key, key)


def by_id(action_id: str) -> Action:
    return _BY_ID[action_id]


def is_offered(action: Action, situation: Situation) -> bool:
    if situation.past and (action.changes_run or action.id in _OF_THE_LIVE_RUN) and action.id != "view_again":
        return False
    return not (action.changes_run and situation.read_only) and action.when(situation)


def offered(situation: Situation) -> list[Action]:
    return [action for action in ACTIONS if is_offered(action, situation)]


def bindings(actions: Iterable[Action] = ACTIONS) -> list[Binding]:
    """Return a binding a key, each with an id that a keymap can name: `restart`, `follow`, `follow.F`."""
    found = []
    for action in actions:
        for index, key in enumerate(action.keys):
            binding_id = action.id if index == 0 else f"{action.id}.{key}"
            found.append(
                Binding(
                    key, f"act('{action.id}')", action.label, show=False, id=binding_id, tooltip=action.help,
                    priority=action.priority, key_display=key_name(key),
                )
            )  # fmt: skip
    return found


@lru_cache(maxsize=16)  # asked each time log lines are painted
def footer_keys(situation: Situation) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return key and label of what the footer shows: those that may go, those that never do."""
    shown = [a for a in offered(situation) if a.footer is not None and a.footer(situation)]
    pairs = [(a.shown or key_name(a.keys[0]), a.label_in(situation), a.last) for a in shown]
    keys = [(key, label) for key, label, last in pairs if not last]
    return keys, [(key, label) for key, label, last in pairs if last]


def screens_key(situation: Situation) -> tuple[str, str] | None:
    """Return the overview's hint at the other screens: their digits, as `1-5` or `1 2 4`; None where there is none."""
    digits = sorted(action.keys[0] for action in offered(situation) if action.id in set(Face))
    if situation.face is not Face.OVERVIEW or len(digits) < 2:
        return None
    first, last = digits[0], digits[-1]
    is_row = int(last) - int(first) == len(digits) - 1
    return (f"{first}-{last}" if is_row else " ".join(digits)), "screens"
