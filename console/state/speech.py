"""One line of a log, reduced to what is said: who says it (rank, actor), how loud (level), and the words themselves.

Time stamps, ranks, levels, logger names, glog heads, journal heads and JSON wrappers go; indentation stays, since it
tells a stack or source code from an error. Whether a line is a dump of settings is told, too: error words in there are
no errors. Knows one line at a time. Pure.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from console.state.lazy import lazy


class Speech(NamedTuple):
    speaker: str
    """`rank 3`, `WorkerDict pid=81`; empty where the line names nobody."""
    level: str
    """`E`, `W`, `I`, or empty where the line states none."""
    body: str
    is_settings: bool
    """A configuration, an argument list or a record of values: its words are no events."""


_LEVELS: Final = {"CRITICAL": "E", "FATAL": "E", "SEVERE": "E", "ERROR": "E", "ERR": "E", "PANIC": "E"}
_LEVELS_ALL: Final = _LEVELS | {"WARNING": "W", "WARN": "W"} | dict.fromkeys(("INFO", "DEBUG", "NOTICE", "TRACE"), "I")
_LEVEL: Final = "|".join(_LEVELS_ALL)
_CLOCK: Final = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_ZONE: Final = r"(?:Z|[+-]\d\d:?\d\d)?"

_HEAD: Final = lazy(
    rf"""(?:
      \[(?:rank|Rank|RANK)[ ]?:?(?P<rank>\d+)\]:? | \[(?:default)?(?P<local>\d+)\]: | (?P<srun>\d+):(?=[ ])
      | [Rr]ank[ ]?(?P<said>\d+):
    | \[\d+,(?P<mpi>\d+)\]<std\w+>:?
    | \[PG[ ][^\]]{{0,80}}Rank[ ](?P<group>\d+)\]
    | \((?P<actor>[\w.<>:-]{{1,60}}(?:[ ]\w+)?[ ]pid=\d+)[^()]{{0,60}}\)
    | [|-]?[ ]?\[?\d{{4}}[-/]\d\d[-/]\d\d[T_ ]{_CLOCK}{_ZONE}\]?:?(?:[ ](?:UTC|GMT))?
    | \d\d/\d\d/\d{{4}}[ ]{_CLOCK} | \[\d\d/\d\d/\d\d[ ]{_CLOCK}\] | \d\d/\d\d[ ]{_CLOCK} | \[?{_CLOCK}\]?(?=\s)
    | (?:[A-Z][a-z]{{2}}[ ])?[A-Z][a-z]{{2}}[ ]{{1,2}}\d{{1,2}}[ ]{_CLOCK}[ ][\w.-]+[ ](?!kernel)[\w.@/:-]+(?:\[\d+\])?:
    | [A-Z][a-z]{{2}}[ ]{{1,2}}\d{{1,2}}[ ]{_CLOCK}[ ][\w.-]+[ ]kernel:
    | \[[A-Z][a-z]{{2}}[ ][A-Z][a-z]{{2}}[ ]{{1,2}}\d{{1,2}}[ ]{_CLOCK}[ ]\d{{4}}\] | \[[ ]{{0,6}}\d+\.\d{{6}}\]
    | kern(?:el)?:
    | std(?:err|out)[ ][FP](?=[ ]) | std(?:err|out):(?:[ ]{{1,40}}(?=(?:{_LEVEL})\b)|(?=[ ]))
    | [\w.-]+-\d+[ ]{{1,8}}\|(?=[ ])
    | (?P<glog>[EWIF])\d{{4}}[ ]{_CLOCK}[ ]{{1,3}}(?:\d+[ ])?[\w./-]+:\d+\]
    | \[(?P<torch>[EWIF])(?:\d{{3,4}}[ ]{_CLOCK})?[ ][\w.]+:\d+\]
    | (?P<klog>[EWIF])\d{{4}}[ ]{_CLOCK}[ ]{{1,3}}
    | \[(?P<bracket>{_LEVEL})(?:\|[^\]]{{0,80}})?\]:?
    | (?P<logger>{_LEVEL}):[\w.-]{{1,80}}:(?=\S)
    | (?P<word>{_LEVEL})(?::[ ]{{0,6}}|[ ]*\||[ ]+-(?=[ ])|[ ]{{1,8}}(?=[\[\w"'(]))
    | [a-z_]\w{{0,40}}(?:\.\w{{1,40}}){{0,9}}:[ ](?=\[(?:{_LEVEL})\])
    | \[[\w.]{{1,40}}\](?=\[(?:{_LEVEL})\]) | -[ ][\w.-]{{1,60}}[ ]-[ ](?=(?:{_LEVEL})\b) | -(?=[ ])
    | [|-][ ](?=(?:{_LEVEL})\b)
    | \|[ ]?(?=[\w.<>]{{1,60}}(?::[\w.<>]+:\d+)?[ ][|-][ ])
    | [\w.<>]{{1,60}}:[\w.<>]+:\d+[ ]- | (?!Error)[a-z_]\w*(?:\.\w+){{0,6}}[ ]\|(?=[ ])
    | \[?[\w./-]{{1,120}}\.(?:py|cpp|cc|cu|h|go|rs):\d+(?::\w+)?[\]:]?(?=[ ])
    | [\w.-]+:\d+:\d+[ ]\[(?P<nccl>\d+)\](?=[ ])
    | NCCL[ ](?P<ncclword>WARN|INFO)
    | (?!step|epoch|iter|batch|rank|gpu|cuda|line|layer|exit|error|wandb)[a-z][a-z.-]{{0,40}}\d{{1,5}}:(?=[ ]\S)
    | slurmstepd:[ ](?=error) | srun:[ ](?=error) | \[launcher\] | \[(?:titan|deepspeed|trainer|worker)\]
    )[ ]?""",
    re.VERBOSE,
)
_SPEAKERS: Final = ("rank", "local", "srun", "said", "mpi", "group", "nccl")
_LETTERS: Final = {"E": "E", "F": "E", "W": "W", "I": "I"}
_MAX_HEADS: Final = 10
_BARS: Final = lazy(r"^.{0,200}?\d{1,3}%\|[^|]{0,200}\|[^\[\]]{0,80}\[[^\]]{0,200}\] ?(?=\S)")
"""A progress bar with something glued behind it."""

_JSON_LEVEL: Final = lazy(rf'"(?:level|levelname|severity|lvl)": ?"({_LEVEL})"', re.IGNORECASE)
_JSON_TEXT: Final = lazy(r'"(?:message|msg|event|error|exception|exc_info)": ?"((?:[^"\\]|\\.)*)"')
_LOGFMT: Final = lazy(rf'^(?:\S+=\S+ ){{0,4}}level=({_LEVEL})\b.*?\bmsg="?(.*?)"?$', re.IGNORECASE)

_SETTINGS: Final = lazy(
    r"""^[ ]*(?:
      [{(\[]['"{(\[] | \{$ | ['"][\w .-]+['"][ ]?:
      | (?:Namespace|OmegaConf|DictConfig|TrainingArguments|Config|\w*Config|\w*Args|\w*Arguments)[({]
      | [\w ./-]{0,40}\b(?:config(?:uration)?|args|argv|arguments?|params?|hparams|hyperparameters|settings
      |options|overrides|namespace|environ(?:ment)?|cmdline|command[ ]line|flags?)\b[\w ]{0,12}[:=]
      | -{1,2}[a-z][\w-]+(?:[ =]|$) | export[ ]\w+= | [A-Z][A-Z0-9_]{2,}=\S* | \+[ ](?!pkill|killall)
      | (?!error|fatal|exception|reason|cause|caused\ by|failure|message)[a-z_][\w.-]{0,60}(?:[ ]\.{2,}
      |[ ]{0,4}[:=])[ ]{0,4}(?:True|False|true|false|None|null|none|yes|no|on|off
      |-?[\d.]+(?:e[+-]?\d+)?[a-z%]{0,4}|['"\[{(].*)[ ]{0,4},?(?:[ ]{0,4}\#.*)?$
    )""",
    re.VERBOSE,
)


@lru_cache(maxsize=2048)  # as in `signs`
def hear(text: str) -> Speech:
    """Reduce a line. A bar with something glued behind it gives way to that."""
    speaker, level, at = "", "", 0
    if (bar := _BARS.match(text)) is not None:
        at = bar.end()
    for _ in range(_MAX_HEADS):
        match = _HEAD.match(text, at)
        if match is None or match.end() == at:
            break
        found = match.groupdict()
        if not speaker:
            speaker = next((f"rank {found[key]}" for key in _SPEAKERS if found[key] is not None), found["actor"] or "")
        level = _level_of(found) or level
        at = match.end()
    body = text[at:]
    stripped = body.lstrip()
    if stripped.startswith("{") and (as_json := _from_json(stripped)) is not None:
        return Speech(speaker, *as_json)
    if "level=" in body and (logfmt := _LOGFMT.match(stripped)) is not None:
        return Speech(speaker, _LEVELS_ALL[logfmt[1].upper()], logfmt[2], False)
    return Speech(speaker, level, body, level != "E" and _SETTINGS.match(body) is not None)


def _level_of(found: dict[str, str | None]) -> str:
    letter = found["glog"] or found["torch"] or found["klog"]
    if letter is not None:
        return _LETTERS[letter]
    word = found["bracket"] or found["logger"] or found["word"] or found["ncclword"]
    return _LEVELS_ALL[word] if word is not None else ""


def _from_json(body: str) -> tuple[str, str, bool] | None:
    level = _JSON_LEVEL.search(body)
    text = _JSON_TEXT.search(body)
    if level is None or text is None:
        return None
    return _LEVELS_ALL[level[1].upper()], text[1].split("\\n")[-1].replace('\\"', '"'), False
