"""Whether the last lines of a log say that the training is complete, and what its process then waits for. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from console.state.events import LogLine
from console.state.lazy import lazy
from console.state.speech import hear

_ENDED_WELL: Final = lazy(
    r"\b(?:training|train|finetuning|fine-tuning|pretraining|run|job|experiment)\b.{0,40}\b(?:complete|completed"
    r"|finished|done|succeeded|ended successfully)\b"
    r"|\b(?:done|finished|completed) (?:with )?(?:the )?(?:training|finetuning|fine-tuning|pretraining)\b"
    r"|['\"]train_runtime['\"]"
    r"|\b(?:complete|completed|finished|done) (?:the )?(?:run|job)\b|\bTrainer\.fit`? stopped: `?max_(?:epochs|steps"
    r"|time)\b|\bexiting program at iteration\b|\bafter training is done\b"
    r"|\b(?:reached|hit) (?:the )?max(?:imum)?[_ ](?:steps|iterations|epochs|iters)\b|\ball (?:steps|epochs"
    r"|iterations) (?:are |were )?(?:done|finished|complete\w*)\b"
    r"|^all done\b|^done[.!]*$|\bexited successfully\b|\bfinal (?:model|checkpoint|weights) (?:was |has been "
    r"|is )?(?:saved|written)\b|\b(?:saved|wrote) (?:the )?final (?:model|checkpoint|weights)\b"
    r"|\bearly stopping (?:triggered|condition met)\b|\btraining time[: ]+\d+:\d+:\d+|\btotal training time\b",
    re.IGNORECASE,
)
_NOT_THE_END: Final = lazy(
    r"\b(?:not|never|fail\w*|error|before|until|incomplete|will be|when|once|if|while|unless|epoch|phase|stage|round"
    r"|warm-?up|eval\w*|valid\w*|download\w*|load\w*"
    r"|tokeni[sz]\w*|compil\w*|preprocess\w*|so far|steps? \d+ of|percent|reward model|tokenizer|split)\b",
    re.IGNORECASE,
)
_NO_ERRORS: Final = lazy(
    r"\b(?:0|no|zero|without(?: any)?) (?:errors?|failures?|failed)\b(?:\(s\))?|\b(?:errors?|failures?"
    r"|failed)[ :=]+0\b|\b(?:with )?exit code 0\b",
    re.IGNORECASE,
)
_STILL_WAITS: Final = lazy(
    r"\b(?:wait(?:ing)?|finali[sz]ing|upload(?:ing)?|sync(?:ing|hroni[sz]ing)|flush(?:ing)?|join(?:ing)?"
    r"|shut(?:ting)? ?down|tear(?:ing)? ?down|clean(?:ing)? ?up"
    r"|still (?:running|alive|there)|not exit\w*|process group|destroy\w*|draining|closing|terminating workers)\b",
    re.IGNORECASE,
)
_GONE_AT_LAST: Final = lazy(
    r"\bSynced\b|\bFind logs at\b|\bexited\b|\bbye\b|\ball (?:files|uploads|workers) (?:\w+ )?(?:synced|done"
    r"|finished|exited)\b",
    re.IGNORECASE,
)
_LAST_LINES: Final = 60


def finished_at(lines: Sequence[LogLine]) -> int | None:
    """Return the place of the line among the last ones that says that the training is complete."""
    for index in range(len(lines) - 1, max(-1, len(lines) - 1 - _LAST_LINES), -1):
        text = lines[index].text
        if _ENDED_WELL.search(text) is None:
            continue
        body = _NO_ERRORS.sub("", hear(text).body)
        if "train_runtime" in body or (_ENDED_WELL.search(body) and not _NOT_THE_END.search(body)):
            return index
    return None


def still_waits(lines: Sequence[LogLine], done_at: int) -> LogLine | None:
    """Return the line behind the done line that tells what the process still waits for."""
    found = None
    for line in lines[done_at + 1 :]:
        if _GONE_AT_LAST.search(line.text):
            return None
        if found is None and _STILL_WAITS.search(line.text):
            found = line
    return found
