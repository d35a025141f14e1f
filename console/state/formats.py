"""The log formats that the console knows, and how to find one by name.

The data is in `trainers`, a module for each family; each format carries lines that it must match and lines that it must
refuse, and the tests run them all against all formats. The order is the order of detection. Pure.
"""

from __future__ import annotations

import difflib
from typing import Final

from console.state.formatrules import Format, FormatError, Literals, user_format
from console.state.trainers import blocks, frameworks, huggingface, jax, pretraining, speculative

FORMATS: Final[tuple[Format, ...]] = (
    *speculative.FORMATS,
    *pretraining.FORMATS,
    *blocks.FORMATS,
    *frameworks.FORMATS,
    *jax.FORMATS,
    *huggingface.FORMATS,
)
LITERALS: Final = Literals(FORMATS)
"""Every known format, in the order in which a line is tried against them."""

_SIGNS: Final = frozenset("\\()[]{}*+?|^$")
"""What stands in regular expressions and in no name."""


def is_expression(text: str) -> bool:
    """Whether this is no name of a format but a regular expression with named groups."""
    return "(?P<" in text


def find_format(text: str) -> Format:
    """Return the format of a name, or that of a regular expression with named groups. Raises: FormatError."""
    by_name = {fmt.name: fmt for fmt in FORMATS}
    if (known := by_name.get(text)) is not None:
        return known
    if is_expression(text):
        return user_format(text)
    nearest = difflib.get_close_matches(text, [*by_name, "auto"], n=1)
    hint = f'; did you mean "{nearest[0]}"?' if nearest else ""
    if not _SIGNS.isdisjoint(text):
        hint = "; as a regular expression it needs a group (?P<step>...)."
    raise FormatError(
        f'unknown log format "{text}"{hint} Known: auto, {", ".join(by_name)}, or a regex with (?P<step>...)'
    )
