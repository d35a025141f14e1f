"""What a sign is: words of a log that speak for one reason, how far they are trusted, and when they say nothing.

The order of trust, believed first to last. Within one row the first in time wins, since what fails first is the cause:

| trust   | who speaks                                     | why it stands here                                   |
| ------- | ---------------------------------------------- | ---------------------------------------------------- |
| KERNEL  | kernel, driver, systemd, slurm's memory watch  | they did it or saw it, and name victim and reason    |
| PROGRAM | the process that failed, the shell that ran it | it knows its own failure; others die of it           |
|         | the launcher on a signal from outside          | it got the signal itself                             |
| DEATH   | the launcher on the first rank that was killed | true, without the why, and before what others notice |
| TIMEOUT | collectives and stores that waited in vain     | a consequence wherever any rank failed first         |
| SIGNAL  | `Killed`, `Terminated`, the status' own signal | says how, never why: a bare `Killed` is unknown      |
| GENERAL | closed connections, broken pipes, dead peers   | others died: named only where nothing else is known  |

Besides: a condition that lasts (`lasting`: NaN, CPU fallback, recompilation) is no end, and is named only where nothing
ended the run. A status alone proves little: 0 is no completion, 1 is no cause. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from console.reasons import Reason
from console.state.lazy import lazy


class Trust(IntEnum):
    """Lower is believed first."""

    KERNEL = 0
    PROGRAM = 1
    DEATH = 2
    TIMEOUT = 3
    SIGNAL = 4
    GENERAL = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One row of a table: phrases that real programs write, and what must not stand beside them."""

    reason: Reason
    words: tuple[str, ...]
    """In lower case; a line that holds none of them is never of this sign: the cheap test that most lines fail."""
    says: re.Pattern[str]
    unless: re.Pattern[str] | None = None
    trust: Trust = Trust.PROGRAM
    anywhere: bool = False
    """Unmistakable wherever in a line it stands. Else it must begin the line, or the line must be an error by its
    shape or level; otherwise it counts only for a run that failed and has no better sign."""
    quiet: bool = False
    """Also believed on lines of level warning or info."""
    lasting: bool = False
    """A condition in which the run goes on: steps behind it don't say that it was handled."""
    samples: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()


def sign(
    reason: Reason,
    words: tuple[str, ...],
    *says: str,
    unless: str = "",
    trust: Trust = Trust.PROGRAM,
    anywhere: bool = False,
    quiet: bool = False,
    lasting: bool = False,
    samples: tuple[str, ...] = (),
    refuses: tuple[str, ...] = (),
) -> Sign:
    """Make a row; `says` are alternatives."""
    return Sign(
        reason=reason,
        words=words,
        says=lazy("|".join(map(_scoped, says))),
        unless=lazy(_scoped(unless)) if unless else None,
        trust=trust,
        anywhere=anywhere,
        quiet=quiet,
        lasting=lasting,
        samples=samples,
        refuses=refuses,
    )


def _scoped(pattern: str) -> str:
    """`(?i)` at the head of an alternative holds for that alternative alone."""
    return f"(?i:{pattern[4:]})" if pattern.startswith("(?i)") else f"(?:{pattern})"
