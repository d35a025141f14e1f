"""What stands before a record in a line of a log: stamps, ranks, levels, loggers, labels of launchers and containers.

One expression for all of it, as data: a record is looked for where it ends, and whoever must judge lines elsewhere gets
its text (protocol.ErrorRule). It keeps to what Python 3.8 knows. Pure.
"""

from __future__ import annotations

import re
from typing import Final

from console.state.lazy import lazy

PREFIX: Final = lazy(
    r"""(?:(?!(?:[Ss]tep|iter|[Ee]poch)\b|\{')(?:
      \s+ | [\ufffd\u2400\ufeff]+ | (?:[-:|]+|>>?)(?=\s)
    # who: ranks of torchrun and of loggers, Ray's processes, labels of srun, mpirun, pdsh, compose and journald
    | [\[(]?(?:rank|RANK|Rank|default|trainer)[ :]?(?P<rank>\d+)(?:[\])]:?|\[\d+\]\[\w+\]:|:(?=\s)|\ \|(?=\s))
    | \((?:[\w.-]+\s)?pid=[^()]{1,60}\)
    | \d{1,4}:(?=\s) | \[(?:R|GPU\ ?)?\d{1,4}\](?::|(?=\s))
    | \[\d{1,4},(?:mpirank:)?\d{1,4}(?:,[\w-]{1,40})?\]<std(?:out|err)>:
    | \[pod/[\w./-]{1,120}\](?=\s) | std(?:out|err)\s[FP](?=\s)
    | (?=[a-z][\w.-]{0,60}(?:[/:]|\s{1,9}\|))(?!step|iter|epoch|batch|loss)(?:
        (?=[\w.-]{0,60}\d)[a-z][a-z\d-]{0,60}(?:\.[a-z\d-]{1,60}){0,6}:(?=\s) | [a-z][\w.-]{0,60}/\d{1,4}(?=\s)
      | (?:[a-z][\w-]{0,60}[_-]\d[\w-]{0,60}\s|(?<!\|\ )[a-z][\w-]{0,60}\s\s)\s{0,9}\|(?=\s))
    | \d{1,3}(?:\.\d{1,3}){3}:(?=\s)
    | [A-Z][a-z]{2}\s[\s\d]\d\s\d\d:\d\d:\d\d\s(?!step|iter)[\w.-]{1,60}\s(?!step:)[\w./-]{1,60}(?:\[\d+\])?:
    # when
    | \[?\d{4}[-/]\d\d[-/]\d\d[T\ ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d|\ UTC)?(?:\]|:(?=\s))?
    | \[?\d\d[/-]\d\d[/-](?:\d{4}|\d\d)[ ]\d\d:\d\d:\d\d(?:[.,]\d+)?\]?
    | (?:[A-Z]|\[[A-Z])[a-z]{2}\ (?:[A-Z][a-z]{2}\ )?[\ \d]\d\ \d\d:\d\d:\d\d(?:\ \d{4})?\]?(?=\s)
    | \d\d-\d\d\ \d\d:\d\d:\d\d(?=\s)
    | \[?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:\ [AP]M)?\]?(?=\s)
    | \[NeMo\ [IW]\ \d{4}-\d\d-\d\d\ [^\]\n]{1,80}\]
    # a container's or a logger's JSON around the record, whose text holds a blank at least
    | \{(?:"[\w@.-]{1,40}":\ ?(?:"[^"\\]{0,200}"|[-\d.eE+]{1,30}|null|true|false),\ ?){0,12}
      "(?:log|message|msg|event)":\ ?"(?=[^"\s]{0,90}\s)
    # how grave, and which logger
    | I\d{4}\ \d\d:\d\d:\d\d\.\d+\s+\d+\s[\w./]{1,90}\.py:\d+\]
    | \[(?:INFO|WARNING|WARN|DEBUG)(?:\|[^\]]{0,80})?\]
    | (?:INFO|WARNING|DEBUG)(?=[\s|]) | (?:INFO|WARNING|DEBUG):(?:[A-Za-z_][\w.]{0,90}:)?
    | \[[\w.]+\.py:\d+(?::\w+)?\] | [\w./]+\.py:\d+\]?(?=\s) | [\w.]+:\d+(?=\s+>>)
    | \[(?:titan|deepspeed|train|trainer|main|dflash)\] | root(?=\s[-|])
    | \[(?!val|eval|test|best|drafter|target|worker)[a-z][\w.-]{0,60}-\d{1,4}\](?=\s)
    | [Tt]rain(?:ing)?:?(?=\s\[?[Ss]tep[\s:=]{1,9}\d)
    | \[(?:__main__|[a-z_]\w{0,60}(?:\.\w{1,60}){1,9})(?::\d+)?(?:,\ rank=\d+)?\](?=[\s\[]) | \[PID:\d+\]
    | \[[A-Za-z_]\w{0,60}\](?=\[(?:INFO|WARNING|DEBUG)\])
    | [A-Za-z_]\w{0,60}(?=\s[-|]\s(?:INFO|WARNING|DEBUG)\b)
    | [A-Za-z_]\w{0,60}:[\w<>]{1,60}:\d+(?=\s-\s)
    | (?<=INFO\ )(?!step|iter|epoch|batch|loss)[a-z_]\w{0,60}:(?=\s)
    | (?<=INFO\ \|\ )(?!step|iter|epoch|batch|loss|train|valid|dev|test)[a-z_]\w{0,60}(?=\s\|\s)
    | (?<=\[INFO\])\[[a-z_]\w{0,60}\](?=\s)
    | [A-Za-z_]\w{0,60}(?:\.\w{1,60}){1,9}(?:(?=\s[-|]\s)|:(?=\s)|:[\w<>]{1,60}:\d+(?=\s-\s))
    | __main__(?:(?=\s-\s)|:(?:[\w<>]{1,60}:\d+(?=\s-\s))?)
    | [\w.-]+:\d+\s+[\w.]+:\d+\s+(?=INFO)
    ))*""",
    re.VERBOSE,
)


def skip_prefix(text: str) -> tuple[int, str | None]:
    """Return where the record starts after time stamps, level, rank and logger, and the rank where one is named."""
    match = PREFIX.match(text)
    return (match.end(), match["rank"]) if match is not None else (0, None)


_WRAPPED: Final = lazy(r'"(?:log|message|msg|event)": ?"(?P<record>(?:[^"\\]|\\.)*)')
_ESCAPED_END: Final = ("\\n", "\\r")


def without_json_after(text: str, start: int) -> str:
    """Cut off what follows the JSON string in which the record stands; where it stands in none, nothing."""
    if text.find('{"', 0, start) < 0 or (match := _WRAPPED.search(text)) is None:
        return text
    end = match.end("record")
    while text.startswith(_ESCAPED_END, end - 2):
        end -= 2
    return text[:end]


_STAMPED: Final = lazy(r"\[?\d{4}-\d\d-\d\d[T ]")
_ANY_DIGIT: Final = str.maketrans("123456789", "000000000")


def label_end(first: str, text: str, start: int) -> int:
    """Return where a further line of a record begins: behind what a launcher puts before each line, which the record's
    first line must have, too. `start` is where the prefix of `text` ends, its indentation included."""
    label = text[:start].rstrip(" ")
    head = first[: len(label)]
    if label != head and _STAMPED.match(label) is not None:
        label, head = label.translate(_ANY_DIGIT), head.translate(_ANY_DIGIT)
    return len(label) if label == head else 0
