"""Equal tracebacks of many ranks as one: which lines belong to them, and what they say together.

A traceback is followed by its rank where lines carry one, however the ranks' lines are mixed; without ranks by standing
together. They are equal where their frames and their last line are, numbers in that left out. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from console.state.prefix import skip_prefix

_START: Final = "Traceback (most recent call last)"
_REACH: Final = 1500
"""Lines between the first and the last of one traceback, those of other ranks among them."""
_CHAINED: Final = ("During handling of the above", "The above exception was")
_NUMBER: Final = re.compile(r"0x[0-9a-f]+|\d+")


class Fold(msgspec.Struct, frozen=True, kw_only=True):
    """Tracebacks that say the same."""

    first: int
    """Index of the line in whose place all are told."""
    members: frozenset[int]
    """Indexes of all lines that belong to them."""
    count: int
    ranks: tuple[str, ...]
    """In the order in which they failed; empty where lines carry none."""
    error: str
    """The last line of the first: `RuntimeError: target_layer_ids missing`."""

    @property
    def text(self) -> str:
        if not self.ranks:
            return f"{self.count} equal tracebacks: {self.error}"
        return f"{self.count} ranks: {self.error}  (rank {self.ranks[0]} first)"


class _Block(msgspec.Struct, kw_only=True):
    rank: str | None
    lines: list[int]
    said: list[str]
    error: str = ""

    @property
    def shape(self) -> tuple[str, ...]:
        return (*self.said, _NUMBER.sub("#", self.error))


def folds(texts: Sequence[str]) -> list[Fold]:
    """Return the tracebacks among these lines that say the same as another one."""
    groups: dict[tuple[str, ...], list[_Block]] = {}
    taken: set[int] = set()
    for index, text in enumerate(texts):
        if _START in text and index not in taken:
            block = _block(texts, index)
            taken.update(block.lines)
            if block.error:
                groups.setdefault(block.shape, []).append(block)
    return [_fold(blocks) for blocks in groups.values() if len(blocks) > 1]


def _fold(blocks: list[_Block]) -> Fold:
    ranks = tuple(dict.fromkeys(block.rank for block in blocks if block.rank is not None))
    return Fold(
        first=blocks[0].lines[0],
        members=frozenset(index for block in blocks for index in block.lines),
        count=len(ranks) if len(ranks) == len(blocks) else len(blocks),
        ranks=ranks if len(ranks) == len(blocks) else (),
        error=blocks[0].error,
    )


def _block(texts: Sequence[str], start: int) -> _Block:
    """Follow one traceback from its first line to the exception, chained ones included."""
    _, rank = _parted(texts[start])
    block = _Block(rank=rank, lines=[start], said=[])
    ended = is_chained = False
    for index in range(start + 1, min(len(texts), start + _REACH)):
        body, whose = _parted(texts[index])
        if whose != rank:
            if rank is None:
                break
            continue
        begins = _START in body
        if (begins and not is_chained) or (ended and not is_chained and _is_other(body)):
            break
        ended, is_chained = ended and not begins, (is_chained and not begins) or body.startswith(_CHAINED)
        block.lines.append(index)
        if begins or not _is_other(body) or body.startswith((" ", "\t")):
            block.said.append(body.strip())
        else:
            block.error, ended = body.strip(), True
    while block.lines and not _parted(texts[block.lines[-1]])[0].strip():
        block.lines.pop()  # blank lines behind it stay where they are
        block.said.pop()
    return block


def _is_other(body: str) -> bool:
    return bool(body.strip()) and not body.startswith(_CHAINED)


def _parted(text: str) -> tuple[str, str | None]:
    """Return what a line says, its indent kept, and the rank that says it."""
    match = _RANK.match(text)
    if match is not None:
        return text[match.end() :], match["rank"]
    start, rank = skip_prefix(text)
    return (text[start:], rank) if rank is not None else (text, None)


_RANK: Final = re.compile(r"\[(?:rank|RANK|Rank|default|trainer)[ :]?(?P<rank>\d+)\]:? ?")
