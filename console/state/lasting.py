"""Lines whose meaning outlasts them: what they tell stays true when they have long left the log's tail.

Today that is dynamo's word that it has stopped compiling. Who reads the log passes such lines on as it meets them.
Pure.
"""

from __future__ import annotations

from console.reasons import Reason
from console.state.sign import Sign
from console.state.signs import sign_of
from console.state.speech import hear

_WORDS = ("ecompile", "cache_size", "cache size")


def is_noteworthy(text: str) -> bool:
    """Whether a line may say something that lasts; asked of every line, so it only looks for a word."""
    return any(word in text for word in _WORDS)


def says_recompile_limit(text: str) -> bool:
    """Whether the line says that the limit was hit, rather than that there is one or how near it is."""
    said = hear(text)
    found: Sign | None = None if said.is_settings else sign_of(said.body)
    return found is not None and found.reason is Reason.RECOMPILE_LIMIT
