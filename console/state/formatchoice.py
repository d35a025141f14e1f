"""Which format a log has: that of its step lines; kept until it stops fitting, when another takes its place.

What a line says is read by the format that it is of; whether that counts is decided here. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from console.state.formatrules import Format, Kind, Reading, is_candidate, read
from console.state.formats import LITERALS

SWITCH_AFTER: Final = 3
"""Step lines of one other format, with none of the chosen format between, that change the choice."""


class FormatChoice:
    def __init__(
        self,
        named: Format | None,
        *,
        each_line: bool,
        is_training: Callable[[Format, Reading], bool],
        on_switch: Callable[[], None],
    ) -> None:
        """`named`: the log has it, whatever its lines look like; None: its lines tell.

        With `each_line` a line of any format counts. `is_training` tells whether an unlabelled bar is the training's.
        """
        self._named, self._each_line = named, each_line
        self._is_training, self._on_switch = is_training, on_switch
        self.format = named
        """The one in use; None while none is known."""
        self._rival: tuple[str, int] = ("", 0)

    def match(self, text: str, start: int, *, partial: bool) -> tuple[Format, Reading] | None:
        """Read a line by the format that it is of; None where it is of none, or doesn't count."""
        for fmt in self._in_order(text):
            if (reading := self._read(fmt, text, start, partial)) is not None:
                return (fmt, reading) if self._choose(fmt, reading) else None
        return None

    def match_own(self, text: str, start: int) -> tuple[Format, Reading] | None:
        """Read a whole line as one of the format in use."""
        fmt = self.format
        if fmt is None or not is_candidate(fmt, text):
            return None
        reading = self._read(fmt, text, start, False)
        return (fmt, reading) if reading is not None else None

    def _in_order(self, text: str) -> Iterator[Format]:
        """Yield the formats that a line may be of, the one in use first: mostly the others need not be asked."""
        current = self.format
        if current is not None and is_candidate(current, text):
            yield current
        for fmt in LITERALS.candidates(text) if self._named is None else (self._named,):
            if fmt is not current and (self._named is None or is_candidate(fmt, text)):
                yield fmt

    def _read(self, fmt: Format, text: str, start: int, partial: bool) -> Reading | None:
        reading = read(fmt, text, start)
        if reading is None or (partial and not reading.rule.bar):
            return None
        return reading if not reading.rule.unlabelled or self._is_training(fmt, reading) else None

    def _choose(self, fmt: Format, reading: Reading) -> bool:
        """Whether a line of this format counts, changing the current format where it should."""
        is_step = reading.rule.kind is Kind.STEP
        if self.format is None or fmt is self.format:
            if is_step:
                self.format, self._rival = fmt, ("", 0)
            return True
        if self._each_line or (fmt.family and fmt.family == self.format.family):
            return True
        if not is_step:
            return False
        name, count = self._rival
        self._rival = (fmt.name, count + 1 if name == fmt.name else 1)
        if self._rival[1] < SWITCH_AFTER:
            return False
        self.format, self._rival = fmt, ("", 0)
        self._on_switch()
        return True
