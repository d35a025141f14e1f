"""All signs in the order in which a line is asked for them: the more specific before the more general. Pure."""

from __future__ import annotations

from typing import Final

from console.state.sign import Sign
from console.state.signs_gpu import GPU, HARDWARE
from console.state.signs_group import GROUP
from console.state.signs_program import CONDITIONS, PYTHON, SHELL
from console.state.signs_system import SIGNALS, SYSTEM

SIGNS: Final[tuple[Sign, ...]] = (*HARDWARE, *SYSTEM, *SHELL, *GPU, *PYTHON, *GROUP, *CONDITIONS, *SIGNALS)


def sign_of(body: str) -> Sign | None:
    """Return the first sign in the words of a line, whatever its shape; None where there is none."""
    for each in SIGNS:
        if each.says.search(body) is not None and (each.unless is None or each.unless.search(body) is None):
            return each
    return None
