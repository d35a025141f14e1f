"""A log format of one's own in a TOML file, for `metrics.format` and `formats --format`.

    name = "mytrainer"
    literals = ["upd "]                        # optional: a line without any of these is not looked at

    [[lines]]
    kind = "step"                              # step, eval, ckpt, header or other
    pattern = 'upd (?P<step>\\d+) \\| (?P<rest>.*)'
    pairs = "key=value"                        # how the numbers of the group `rest` are written

    [names]                                    # the log's key = what it is
    ce = "loss"
    [rates]                                    # the log's key = whose tokens/s it states
    "tok/s" = "global"

    [[samples]]                                # optional: lines that must be read so; checked when the file is loaded
    line = "upd 12 | ce=2.5 tok/s=100"
    step = 12
    loss = 2.5

Errors name the file, the key, what was found there and what was expected.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import msgspec

from console.bounded import bounded_format
from console.configfile import is_format_file
from console.state.formatrules import (
    COLON,
    FIELDS,
    PIPED,
    QUOTED,
    RATE_LAST,
    SPACED,
    USER_GROUPS,
    Format,
    FormatError,
    Kind,
    Lazy,
    Rule,
    Scope,
    user_format,
)
from console.state.formats import is_expression
from console.state.lines import LineSplitter
from console.state.metrics import Parser, Sample

_PAIRS: Final[dict[str, tuple[Lazy, ...]]] = {
    "key=value": (SPACED, RATE_LAST),
    "key: value": (COLON,),
    "key value": (SPACED, RATE_LAST),
    "piped": (PIPED,),
    "quoted": (QUOTED,),
}
_MEANINGS: Final = ", ".join(sorted(FIELDS - {"nan_count", "epoch"}))
_MAX_BYTES: Final = 1 << 20
_FIELD: Final = re.compile(r"Object (?:(?P<unknown>contains unknown)|missing required) field `(?P<name>.*)`")
_REQUIRED: Final = {"lines": "at least one [[lines]] with a pattern", "pattern": "a regular expression"}
_LITERAL_SAMPLES: Final = frozenset({"line", *Sample.__struct_fields__})


class _Line(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pattern: str
    kind: Kind = Kind.STEP
    pairs: str = ""
    anywhere: bool = False
    bar: bool = False
    scope: Scope | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    lines: list[_Line]
    name: str = ""
    title: str = ""
    literals: list[str] = []
    names: dict[str, str] = {}
    rates: dict[str, Scope] = {}
    samples: list[dict[str, Any]] = []
    refuses: list[str] = []


def resolve(chosen: str) -> str | Format:
    """Return a configured format as `Parser` takes it, read from its file where it names one. Raises: FormatError.

    What somebody wrote is tried on lines within bounds of time.
    """
    if is_format_file(chosen):
        return load(Path(chosen).expanduser())
    return bounded_format(user_format(chosen)) if is_expression(chosen) else chosen


def load(path: Path) -> Format:
    """Read a format file, whose expressions are bounded, and try it on its own samples. Raises: FormatError."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise FormatError(f"{path}: found a file of more than {_MAX_BYTES:,} bytes, expected a format file")
        raw = tomllib.loads(data.decode())
    except OSError as exc:
        raise FormatError(f"{path}: the format file can't be read: {exc.strerror or exc}") from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise FormatError(f"{path}: found no valid TOML ({exc}), expected a format file") from exc
    try:
        file_ = msgspec.convert(raw, _File)
    except msgspec.ValidationError as exc:
        raise FormatError(f"{path}: {_key_of(exc)}") from exc
    made = bounded_format(_format(path, file_))
    _try_samples(path, made, file_)
    return made


def _key_of(exc: msgspec.ValidationError) -> str:
    what, _, where = str(exc).partition(" - at `$")
    key = where.rstrip("`").lstrip(".") if where else ""
    if (field := _FIELD.fullmatch(what)) is None:
        return f"{key}: {what}" if key else what
    name = field["name"]
    full = f"{key}.{name}" if key else name
    if not field["unknown"]:
        return f"{full}: found none, expected {_REQUIRED[name]}"
    names = _Line.__struct_fields__ if key else _File.__struct_fields__
    nearest = difflib.get_close_matches(name, names, n=1)
    listed = f"expected one of {', '.join(names)}"
    return f"{full}: found an unknown key, {f'did you mean {nearest[0]}? ({listed})' if nearest else listed}"


def _format(path: Path, file: _File) -> Format:
    if not file.lines:
        raise FormatError(f"{path}: lines: found none, expected {_REQUIRED['lines']}")
    for key, meaning in file.names.items():
        if meaning not in FIELDS:
            raise FormatError(f'{path}: names."{key}": found "{meaning}", expected one of {_MEANINGS}')
    rules = tuple(_rule(path, number, line) for number, line in enumerate(file.lines))
    if not any(rule.kind is Kind.STEP and _names_step(rule, file) for rule in rules):
        raise FormatError(
            f"{path}: lines: found no line of kind step that names its step, expected a group (?P<step>...) "
            "or a key that leads to step under [names]"
        )
    name = file.name or path.stem
    return Format(
        name=name,
        title=file.title or name,
        literals=tuple(file.literals) or ("",),
        rules=rules,
        aliases={**USER_GROUPS, **file.names},
        rates=file.rates,
    )


def _names_step(rule: Rule, file: _File) -> bool:
    return "step" in rule.head.compiled().groupindex or (bool(rule.pairs) and "step" in file.names.values())


def _rule(path: Path, number: int, line: _Line) -> Rule:
    where = f"{path}: lines[{number}]"
    try:
        head = re.compile(line.pattern)
    except re.error as exc:
        raise FormatError(
            f'{where}.pattern: found "{line.pattern}", expected a valid regular expression: {exc}'
        ) from exc
    if head.search("") is not None:
        raise FormatError(f'{where}.pattern: found "{line.pattern}", expected one that matches no empty line')
    if line.pairs and line.pairs not in _PAIRS:
        raise FormatError(f'{where}.pairs: found "{line.pairs}", expected one of {", ".join(_PAIRS)}')
    if line.pairs and "rest" not in head.groupindex:
        raise FormatError(
            f'{where}.pattern: found "{line.pattern}", expected a group (?P<rest>...) that holds the pairs'
        )
    return Rule(
        kind=line.kind,
        head=Lazy(line.pattern),
        pairs=_PAIRS.get(line.pairs, ()),
        anywhere=line.anywhere,
        bar=line.bar,
        scope=line.scope,
    )


def _try_samples(path: Path, made: Format, file: _File) -> None:
    for number, sample in enumerate(file.samples):
        where = f"{path}: samples[{number}]"
        if unknown := sorted(set(sample) - _LITERAL_SAMPLES):
            raise FormatError(f"{where}: found the key {unknown[0]}, expected line, kind, step, loss, tok_s, ...")
        if not isinstance(text := sample.get("line"), str):
            raise FormatError(f"{where}.line: found {text!r}, expected the text of a line")
        read = _read(made, text)
        for key, wanted in sample.items():
            found = getattr(read, key, None) if read is not None else None
            if key != "line" and found != wanted:
                raise FormatError(f"{where}.{key}: found {found!r} in the line, expected {wanted!r}")
        if read is None:
            raise FormatError(f'{where}.line: found no pattern for "{text}", expected one of [[lines]] to match it')
    for number, text in enumerate(file.refuses):
        if _read(made, text) is not None:
            raise FormatError(f'{path}: refuses[{number}]: found a pattern for "{text}", expected none to match it')


def _read(made: Format, text: str) -> Sample | None:
    parser = Parser(made)
    samples = [
        sample
        for line in LineSplitter().feed(text.encode() + b"\n", 0, 0.0)
        for sample in parser.feed(line, live=False)
        if sample.format == made.name
    ]
    return samples[-1] if samples else None
