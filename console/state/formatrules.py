"""What a log format is made of, and how one line is read by it: numbers, rules, user patterns.

A format is data (`Format`, `Rule`, `Block`); the tables are in `trainers`. What stands before a record is known by
`prefix`. No state is kept here: what one line can not tell (which progress bar is the training, which format the log
has) is decided in `metrics`, and tokens/s that no line states in `rates`. Pure.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from console.state.lazy import lazy


class Kind(StrEnum):
    """What a line reports."""

    STEP = "step"
    EVAL = "eval"
    CKPT = "ckpt"
    HEADER = "header"
    OTHER = "other"


class Scope(StrEnum):
    """Whose tokens a rate counts; rates of different scopes never share a series."""

    GLOBAL = "global"
    PER_DEVICE = "per_device"
    RANK = "rank"
    DERIVED = "derived"


class FormatError(ValueError):
    """A format's name is not known, or a user's pattern can not be used; the message says why and what would do."""


class Lazy:
    """A regular expression that is compiled when it is first used.

    A log needs those of one trainer, and start-up none. The first call puts the compiled pattern's own methods in
    place, so later ones cost no more than with `re.compile`.
    """

    __slots__ = ("finditer", "match", "search", "source")

    finditer: Callable[[str], Iterator[re.Match[str]]]
    match: Callable[[str, int], re.Match[str] | None]
    search: Callable[[str, int], re.Match[str] | None]

    def __init__(self, source: str) -> None:
        self.source = source
        self.finditer = lambda text: self.compiled().finditer(text)
        self.match = lambda text, start: self.compiled().match(text, start)
        self.search = lambda text, start: self.compiled().search(text, start)

    def compiled(self) -> re.Pattern[str]:
        """Return the pattern. Raises: re.error."""
        pattern = re.compile(self.source)
        self.finditer, self.match, self.search = pattern.finditer, pattern.match, pattern.search
        return pattern


FIELDS: Final = frozenset(
    {
        "step",
        "total",
        "loss",
        "tok_s",
        "lr",
        "grad_norm",
        "queue_min",
        "queue_max",
        "step_s",  # seconds for one step, as the line states it
        "step_ms",
        "steps_per_s",
        "tokens_per_step",
        "seq_len",
        "global_batch",
        "nan_count",
        "eta_s",
        "epoch",  # only by a rule's own group: the number of an epoch whose batches the line counts
        "global_step",  # the training step, of a line whose bar counts something else
        # What tokens/s are derived from; see `rates`.
        "samples_per_s",
        "step_tokens",  # tokens of this very step, of all workers
        "tokens_total",  # running total of tokens seen, of all workers
        "train_ms",  # running total of the time spent in training
        "window_s",  # seconds since the step line before
        "iter_ms",  # milliseconds for one micro-batch, which is less than a step
        "micro_batch",
        "world_size",
    }
)
"""Names that a rule's groups and a format's aliases may lead to; any other number of a line is an extra field."""

INT: Final = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,12}(?!\d))"
VALUE: Final = (
    r"(?:[-+]?(?:\d+(?:,\d{3})*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?:[KMGkmg](?:it)?)?"
    r"|[-+]?(?:nan|NaN|NAN|inf|Inf|INF))"
)
"""A number, `nan` or `inf`, with thousands commas and a K, M or G; never a number with another unit behind it."""
NAMED_LOSS: Final = rf"(?P<loss>{VALUE})"
NAMED_STEP: Final = rf"(?P<step>{INT})"
STEP_OF: Final = rf"(?P<step>{INT})/(?P<total>{INT})"
_END = r"(?![\w:/]|[.,]\d)"

SPACED: Final = Lazy(rf"(?<![\w.])(?P<key>[A-Za-z_][\w/.@-]{{0,90}})(?: ?[=:] {{0,9}}| {{1,9}})(?P<val>{VALUE}){_END}")
"""`loss 1.2`, `loss=1.2`, `loss: 1.2`, whatever stands between the pairs."""
COLON: Final = Lazy(rf"(?<![\w.])(?P<key>[A-Za-z_][\w/.@-]{{0,90}}): {{0,9}}(?P<val>{VALUE}){_END}")
RATE_LAST: Final = Lazy(rf"(?<![\w.])(?P<val>{VALUE}) ?(?P<key>tok/s|tokens/s)(?= *(?:[|,)]|$)| +[a-z])")
"""`21.5K tok/s`."""
PIPED: Final = Lazy(rf"(?:^|(?<=\|)) *(?P<key>[^|:\s][^|:]{{0,100}}): *(?P<val>{VALUE}) *(?=\||$)")
"""`grad norm: 1.2 | lm loss: 3.0 |`: keys hold blanks."""
QUOTED: Final = Lazy(
    rf"""['"](?P<key>[^'"]{{1,120}})['"]: *['"]?(?:np\.float\d\d\()?(?P<val>{VALUE})(?=['"),}}\]\s]|$)"""
)
"""The pairs of a Python or JSON dictionary, the numbers quoted or not."""

BAR: Final = (
    rf"\d{{1,3}}%\|[^|]{{0,400}}\| *(?P<step>{INT}) */ *(?P<total>{INT}) *\[[\d:]+<(?P<eta>[^,\]]*), *"
    r"(?:(?P<steps_per_s>[\d.]+) ?(?:it|step)/s|(?P<step_s>[\d.]+) ?s/(?:it|step)|\?[^,\]]*)(?:,(?P<rest>[^\]]*))?\]"
)
"""A tqdm bar that counts iterations or steps; downloads (`MB/s`) and data sets (`examples/s`) are not of this shape."""

_SUFFIX = {"K": 1e3, "M": 1e6, "G": 1e9}
_GROUPED = lazy(r"[-+]?\d{1,3}(?:,\d{3})+(?![\d,])")
_SUFFIXED = lazy(r"(?P<number>[-+\d.eE]+)(?P<suffix>[KMG]?)(?:it)?", re.IGNORECASE)


def parse_number(text: str) -> float | None:
    """Read `1,234`, `21.5K`, `1.23kit`, `2.1e+04` or `nan`; None where it is no number."""
    if "_" in text:
        return None
    if "," in text:
        if _GROUPED.match(text) is None:
            return None
        text = text.replace(",", "")
    try:
        return float(text)
    except ValueError:
        match = _SUFFIXED.fullmatch(text)
    if match is None:
        return None
    try:
        return float(match["number"]) * _SUFFIX.get(match["suffix"].upper(), 1.0)
    except ValueError:
        return None


_DURATION_PART: Final = lazy(r"(\d+(?:\.\d+)?) ?(d|h|m|s)(?:ays?|ours?|in(?:ute)?s?|ec(?:ond)?s?)?(?![A-Za-z]),? ?")
_UNIT_S: Final = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_CLOCK: Final = lazy(r"(?:(?P<days>\d+) days?, )?(?P<parts>\d{1,6}(?::\d{1,2}){1,2})(?:\.\d+)?$")


def parse_duration(text: str) -> float | None:
    """Read `16:42`, `5:10:22`, `1 day, 2:03:04`, `3h12m` or `45s` as seconds; None where it is no duration."""
    text = text.strip()
    if (clock := _CLOCK.match(text)) is not None:
        seconds = 0.0
        for part in clock["parts"].split(":"):
            seconds = seconds * 60 + int(part)
        return seconds + 86400.0 * int(clock["days"] or 0)
    seconds, place = 0.0, 0
    for match in _DURATION_PART.finditer(text):
        if match.start() != place:
            return None
        seconds += float(match[1]) * _UNIT_S[match[2]]
        place = match.end()
    return seconds if place and place == len(text) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One shape of line."""

    kind: Kind
    head: Lazy
    """Matched where the prefix ends. Groups named as in `FIELDS` are read; a group `rest` is searched for `pairs`."""
    pairs: tuple[Lazy, ...] = ()
    """Each finds the groups `key` and `val`, again and again; those after the first only while no rate was read."""
    anywhere: bool = False
    """The head may stand anywhere in the line."""
    needs: frozenset[str] = frozenset()
    """Fields or extra names without which the line is not of this shape (any one of them)."""
    rejects: frozenset[str] = frozenset()
    """Keys that say that the line is of another kind."""
    scope: Scope | None = None
    """Overrides the scope of the format's rate: `rank` marks a worker's own line."""
    bar: bool = False
    """A progress bar: it is complete as soon as its closing bracket has come."""
    unlabelled: bool = False
    """A bar that does not say what it counts: only the log around it can tell whether it is the training."""
    opens: bool = False
    """The lines after it may belong to the same record."""
    continues: bool = False
    """Its line stands by itself, and adds to the record that is open, if there is one."""
    epoch_from: int | None = None
    """Its counter begins anew with each epoch: the training step is that of the epochs before plus this one. Gives the
    number of the first epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The lines after a rule's line that say nothing by themselves and belong to its record."""

    line: Lazy
    """Matched at the indentation, which a launcher's label may precede; its group `rest` is searched for pairs. Any
    other line ends the record."""
    pairs: tuple[Lazy, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How one trainer writes its log. Add a trainer by adding one of these to a table."""

    name: str
    title: str
    literals: tuple[str, ...]
    """A line that holds none of these is none of its step, eval or header lines: the cheap first test."""
    rules: tuple[Rule, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    """The log's key -> a name of `FIELDS`; other numeric keys become extra fields under their own name."""
    rates: Mapping[str, Scope] = field(default_factory=dict)
    """The log's keys that state tokens/s, each with its scope."""
    vanished_loss_is_nan: bool = False
    """No loss and a count of NaN steps above 0 means NaN."""
    zero_loss_is_nan: bool = False
    """A loss of exactly 0 with a gradient norm of NaN means NaN."""
    step_from_bar: bool = False
    """Its records carry no step: it is that of the bar."""
    checkpoint_at_last_step: bool = False
    """Its checkpoint lines carry no step and are written right after the step line."""
    block: Block | None = None
    """How the further lines of a record look that one of its rules has opened."""
    derives: str = ""
    """How tokens/s come about where its lines state none, in words; `rates` carries it out."""
    family: str = ""
    """Formats of one family stand in one log: they don't take turns with each other."""
    samples: tuple[tuple[str, Mapping[str, object]], ...] = ()
    """Lines that it must match, each with what must come out."""
    refuses: tuple[str, ...] = ()
    """Lines that look like its step lines and must not become steps."""


@dataclass(slots=True)
class Reading:
    """The numbers of one line, `nan` and `inf` among them."""

    rule: Rule
    fields: dict[str, float]
    extra: dict[str, float]
    scope: Scope | None


def is_candidate(fmt: Format, text: str) -> bool:
    """Whether a line may be of a format: the cheap test that most lines fail."""
    for literal in fmt.literals:  # noqa: SIM110  any() with a generator takes three times as long
        if literal in text:
            return True
    return False


class Literals:
    """Tells of which of many formats a line may be by one pass over their literals, many of which they share."""

    def __init__(self, formats: Iterable[Format]) -> None:
        self._formats = tuple(formats)
        places: dict[str, list[int]] = {}
        for place, fmt in enumerate(self._formats):
            for literal in fmt.literals:
                places.setdefault(literal, []).append(place)
        self._places = tuple((literal, tuple(found)) for literal, found in places.items())

    def candidates(self, text: str) -> list[Format]:
        """Return the formats of which a line may be, in their order."""
        found: set[int] = set()
        for literal, places in self._places:
            if literal in text:
                found.update(places)
        return [self._formats[place] for place in sorted(found)] if found else []


def read(fmt: Format, text: str, start: int) -> Reading | None:
    """Read a line by the first rule of a format that fits; `start` is where the record begins after its prefix."""
    for rule in fmt.rules:
        match = rule.head.search(text, start) if rule.anywhere else rule.head.match(text, start)
        if match is not None and (reading := _read_pairs(fmt, rule, match)) is not None:
            return reading
    return None


def _read_pairs(fmt: Format, rule: Rule, match: re.Match[str]) -> Reading | None:
    reading = Reading(rule, {}, {}, None)
    rest = ""
    for name, raw in match.groupdict().items():
        if raw is None:
            continue
        if name == "rest":
            rest = raw
        elif name == "eta":
            if (eta_s := parse_duration(raw)) is not None:
                reading.fields["eta_s"] = eta_s
        elif (value := parse_number(raw)) is not None:
            name = fmt.aliases.get(name, name)
            (reading.fields if name in FIELDS else reading.extra)[name] = value
    if "tok_s" in reading.fields:
        reading.scope = rule.scope or Scope.GLOBAL
    if not _read_into(fmt, reading, rule.pairs, rest):
        return None
    if rule.needs and rule.needs.isdisjoint(reading.fields) and rule.needs.isdisjoint(reading.extra):
        return None
    return reading


def _read_into(fmt: Format, reading: Reading, all_pairs: tuple[Lazy, ...], text: str) -> bool:
    """Read the pairs of a text; False where one says that the line is of another kind."""
    for pairs in all_pairs:
        if "tok_s" in reading.fields and pairs is not all_pairs[0]:
            break
        for pair in pairs.finditer(text):
            key, number = pair.group("key", "val")
            key = key.strip()
            if key in reading.rule.rejects:
                return False
            if (value := parse_number(number)) is not None:
                _place(fmt, reading, key, value)
    return True


def read_more(fmt: Format, rule: Rule, text: str, start: int) -> Reading | None:
    """Read a line that may belong to the record that a line of `rule` has opened; None where it does not."""
    if fmt.block is None or (match := fmt.block.line.match(text, start)) is None:
        return None
    reading = Reading(rule, {}, {}, None)
    _read_into(fmt, reading, fmt.block.pairs, match["rest"])
    return reading


def _place(fmt: Format, reading: Reading, key: str, value: float) -> None:
    """Put a number where its key leads; the first of a name stays."""
    if (rate_scope := fmt.rates.get(key)) is not None:
        if "tok_s" not in reading.fields:
            reading.fields["tok_s"] = value
            reading.scope = reading.rule.scope or rate_scope
    elif (name := fmt.aliases.get(key)) is not None and name not in reading.fields:
        reading.fields[name] = value
    else:
        reading.extra.setdefault(key, value)


USER_GROUPS: Final[dict[str, str]] = {
    "step": "step",
    "total": "total",
    "loss": "loss",
    "tok_s": "tok_s",
    "lr": "lr",
    "grad_norm": "grad_norm",
    "queue": "queue_min",
    "depth": "queue_max",
}


def meant_groups(names: Iterable[str]) -> dict[str, str]:
    """Return of an expression's groups those that mean nothing but are nearly one of `USER_GROUPS`, with that one."""
    has = set(names)
    strange = sorted(has - USER_GROUPS.keys() - FIELDS)
    nearest = {name: difflib.get_close_matches(name, USER_GROUPS.keys() - has, n=1, cutoff=0.7) for name in strange}
    return {name: found[0] for name, found in nearest.items() if found}


def user_format(pattern: str) -> Format:
    """Make a format of a user's regular expression with named groups.

    Groups of `USER_GROUPS` lead to the fields of that meaning, others become extra fields; `tok_s` is taken as global.
    The pattern is searched for anywhere in the line. Raises: FormatError.
    """
    try:
        head = re.compile(pattern)
    except re.error as exc:
        raise FormatError(f"the format's regular expression is not valid: {exc}") from exc
    if "step" not in head.groupindex:
        known = ", ".join(USER_GROUPS)
        meant = (name for name, each in meant_groups(head.groupindex).items() if each == "step")
        hint = "".join(f", as (?P<{name}>...) is perhaps meant to be" for name in meant)
        raise FormatError(
            f"the format's regular expression needs a group (?P<step>...){hint}; other groups it may have: {known}"
        )
    if head.search("") is not None:
        raise FormatError("the format's regular expression matches an empty line")
    rule = Rule(kind=Kind.STEP, head=Lazy(pattern), anywhere=True, needs=frozenset({"step"}))
    return Format(name="regex", title="the configured pattern", literals=("",), rules=(rule,), aliases=USER_GROUPS)
