"""Formats of trainers whose lines need a rule or two; the same kind of data as in `formats`. Pure."""

from __future__ import annotations

from typing import Final

from console.state.formatrules import Format

MORE: Final[tuple[Format, ...]] = ()
