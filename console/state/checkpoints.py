"""Tells lines that report a checkpoint, whatever the trainer: begun or completed, and of which step. Pure.

A line that speaks of loading, resuming, deleting, failing or planning is none, and neither is source code that would
print one.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

import msgspec

from console.state.formatrules import INT, parse_number
from console.state.lazy import lazy


class CheckpointState(StrEnum):
    STARTED = "started"
    COMPLETED = "completed"


class CheckpointLine(msgspec.Struct, frozen=True, gc=False):
    state: CheckpointState
    step: int | None
    """None where the line names no step."""


_WORDS = (
    r"(?:the |a |new |model |training |full |distributed |async |optimizer |(?:un)?sharded |final |HF-compatible ){0,3}"
)
_COMPLETED: Final = lazy(
    rf"\b(?:saved|wrote|finished (?:saving|writing)) {_WORDS}(?:checkpoint|ckpt)\b"
    r"|(?:\[(?:checkpoint|ckpt)\]|(?<![\w./-])(?:checkpoint|ckpt):) ?(?:saved|wrote|written)\b"
    r"|\bckpt (?:saved|written)\b"
    r"|\bcheckpoint(?: of size [\d.]+ \w+| \S+)?(?: (?:was|has been|successfully|is))* (?:saved|written)\b"
    r"|\bcheckpoint(?: for step [\d,]+ saved| \S+ is ready now)\b|\bglobal checkpoint save :.* save duration\b"
    r"|\bcheckpoint save for step [\d,]+ .*\bfinalized successfully\b"
    r"|(?:\bsaved model to|\[Torch\] Saved) \S*global_step_?\d",
    re.IGNORECASE,
)
_STARTED: Final = lazy(
    rf"\b(?:saving|writing|preparing to save) {_WORDS}(?:checkpoint|ckpt)\b|\bcheckpoint \S+ is about to be saved\b"
    r"|(?:\[(?:checkpoint|ckpt)\]|(?<![\w./-])(?:checkpoint|ckpt):) ?(?:saving|writing)\b"
    r"|\bWriting model to \S*\bmodel_\d{8}\.bin\b"
    r"|\bscheduled async checkpoint save for /"
    r"|\bsaving model to '?\S+\.ckpt\b|(?:\bsaving model to|\[Torch\] Saving) \S*global_step_?\d",
    re.IGNORECASE,
)
_MARKS: Final = ("heckpoint", "CHECKPOINT", "ckpt", "global_step_", "saving model to", "Writing model to")
"""A line that holds none of these reports no checkpoint: most lines cost no more than that."""
_OTHER: Final = lazy(
    r"\b(?:load(?:ed|ing)?|resum\w*|restor\w*|delet\w*|remov\w*|skip\w*|fail\w*|error|could not|can "
    r"?not|unable|every|never"
    r"|not saved|will be|before|disabled|interval|without|last|latest|no)\b|[fF][\"']|\bprint|\blog(?:ger)?\.",
    re.IGNORECASE,
)
_PATH: Final = lazy(r"\S*/\S*")
_NAMED_STEP: Final = lazy(
    rf"\b(?:step|iteration|iter)[ :=]+(?P<step>{INT})\b|@ (?P<updates>{INT}) updates", re.IGNORECASE
)
_STEP_BEFORE: Final = lazy(r"\bglobal step (?P<step>\d{1,12})\b")
"""Lightning names the step first and the best loss between."""
_PATH_STEP: Final = lazy(
    r"(?:(?:checkpoint|ckpt|step|iter|iteration)s?[-_=]|(?<=[-_/])(?:ba|step)|(?<=/)model_(?=\d{8}\.bin))"
    r"0*(?P<step>\d{1,12})(?!\w|\.\d|-of-)"
)


def read_checkpoint(text: str) -> CheckpointLine | None:
    """Return what a line says about a checkpoint, or None where it says nothing about one."""
    for mark in _MARKS:
        if mark in text:
            break
    else:
        return None
    if (match := _COMPLETED.search(text)) is not None:
        state = CheckpointState.COMPLETED
    elif (match := _STARTED.search(text)) is not None:
        state = CheckpointState.STARTED
    else:
        return None
    if _OTHER.search(_PATH.sub(" ", text)):
        return None
    step = _step(text[match.start() :])
    if step is None and (before := _STEP_BEFORE.search(text, 0, match.start())) is not None:
        step = int(before["step"])
    return CheckpointLine(state, step)


def _step(text: str) -> int | None:
    named = _NAMED_STEP.search(text)
    found = (named["step"] or named["updates"]) if named is not None else None
    if found is None:
        in_path = [match["step"] for match in _PATH_STEP.finditer(text)]
        found = in_path[-1] if in_path else None
    value = parse_number(found) if found is not None else None
    return int(value) if value is not None else None
