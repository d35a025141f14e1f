"""All signs in the order in which a line is asked for them: the more specific before the more general. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from console.state.sign import Sign
from console.state.signs_gpu import GPU, HARDWARE
from console.state.signs_group import GROUP
from console.state.signs_program import CONDITIONS, PYTHON, SHELL
from console.state.signs_system import SIGNALS, SYSTEM

SIGNS: Final[tuple[Sign, ...]] = (*HARDWARE, *SYSTEM, *SHELL, *GPU, *PYTHON, *GROUP, *CONDITIONS, *SIGNALS)


def _by_word() -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for place, each in enumerate(SIGNS):
        for word in each.words:
            found.setdefault(word, set()).add(place)
    return {word: frozenset(places) for word, places in found.items()}


_PLACES: Final = _by_word()


def may_be_sign(text: str) -> bool:
    """Whether a line holds a word of any sign: the cheap test before all others."""
    lowered = text.lower()
    for word in _PLACES:  # noqa: SIM110  any() with a generator takes twice as long
        if word in lowered:
            return True
    return False


@lru_cache(maxsize=2048)  # the end of a log is judged anew with every word about a run that is over
def sign_of(body: str) -> Sign | None:
    """Return the first sign in the words of a line, whatever its shape; None where there is none."""
    lowered = body.lower()
    places: set[int] = set()
    for word, which in _PLACES.items():
        if word in lowered:
            places |= which
    for place in sorted(places):
        each = SIGNS[place]
        if each.says.search(body) is not None and (each.unless is None or each.unless.search(body) is None):
            return each
    return None
