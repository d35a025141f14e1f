"""Reading, checking and writing the config file, and building a target from flags.

Every complaint is a ConsoleError(Reason.CONFIG) that names file, key, what was found, what is expected and, for an
unknown key, the nearest known one. Nothing here connects anywhere.
"""

from __future__ import annotations

import difflib
import re
import signal
import string
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import platformdirs

from console.config import Config, Deadlines, Gpus, Metrics, Preflight, Stop, Target
from console.reasons import ConsoleError, Exit, Reason

APP = "dflash-console"
# Names that would be taken for a subcommand: `dflash-console status` must never be ambiguous.
RESERVED_NAMES = frozenset(
    {
        "restart",
        "wait",
        "stop",
        "status",
        "logs",
        "init",
        "demo",
        "open",
        "help",
        "doctor",
        "diagnose",
        "explain",
        "formats",
        "history",
        "replay",
        "compare",
        "metrics",
        "watch",
    }
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SECTIONS: dict[str, type[msgspec.Struct]] = {
    "stop": Stop,
    "preflight": Preflight,
    "gpus": Gpus,
    "metrics": Metrics,
    "deadlines": Deadlines,
}


def default_path() -> Path:
    """Return where the config lives: `$XDG_CONFIG_HOME/dflash-console/config.toml`."""
    return platformdirs.user_config_path(APP) / "config.toml"


def load(path: Path) -> Config:
    """Read and check a config file.

    Raises: ConsoleError(CONFIG) for a file that can't be read, isn't TOML or doesn't fit.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        _complain(path, "", "no such file", f"write one with: {APP} init")
    except OSError as exc:
        _complain(path, "", exc.strerror or str(exc), "expected a readable UTF-8 file")
    except UnicodeDecodeError as exc:
        _complain(path, "", f"not UTF-8 at byte {exc.start}", "expected a readable UTF-8 file")
    return parse(path, text)


def parse(path: Path, text: str) -> Config:
    """Check the text of a config file; `path` is named in complaints only.

    Raises: ConsoleError(CONFIG) for what isn't TOML or doesn't fit.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        _complain(path, "", f"not TOML: {exc}", "strings need quotes, lists need brackets")
    _refuse_unknown(path, "", table, ("default_target", "targets"))
    default = table.get("default_target")
    if default is not None and not isinstance(default, str):
        _complain(path, "default_target", f"found {_shown(default)}", "expected the name of a target")
    tables = table.get("targets", {})
    if not isinstance(tables, dict):
        _complain(path, "targets", f"found {_shown(tables)}", "expected tables: [targets.NAME]")
    targets = {name: _parse_target(path, name, body) for name, body in tables.items()}
    if default is not None and default not in targets:
        _complain(path, "default_target", f"found {_shown(default)}", _expected_one_of(default, targets))
    return Config(default_target=default, targets=targets)


def _parse_target(path: Path, name: str, body: Any) -> Target:
    key = f"targets.{name}"
    if not isinstance(body, dict):
        _complain(path, key, f"found {_shown(body)}", f"expected a table: [{key}]")
    check_name(name, path)
    _refuse_unknown(path, key, body, Target.__struct_fields__)
    for section, struct in _SECTIONS.items():
        inner = body.get(section)
        if isinstance(inner, dict):
            _refuse_unknown(path, f"{key}.{section}", inner, struct.__struct_fields__)
    try:
        target = msgspec.convert(body, Target)
    except msgspec.ValidationError as exc:
        _complain_of_type(path, key, body, str(exc))
    target = _with_format_path(target, path)
    check(target, name, path)
    return target


def _with_format_path(target: Target, path: Path) -> Target:
    """Read the path of a format file as one beside the config file."""
    chosen = target.metrics.format
    if not is_format_file(chosen):
        return target
    whole = str((path.parent / Path(chosen).expanduser()).absolute())
    return msgspec.structs.replace(target, metrics=msgspec.structs.replace(target.metrics, format=whole))


def check_name(name: str, source: Path | str) -> None:
    """Refuse a target's name that can't be a folder's name or would be taken for a subcommand.

    Raises: ConsoleError(CONFIG).
    """
    key = f"targets.{name}"
    if not _NAME.fullmatch(name):
        _complain(source, key, f"found the name {name!r}", "expected letters, digits, '.', '_' and '-', at most 64")
    if name in RESERVED_NAMES:
        _complain(source, key, f"found the name {name!r}", "expected a name that isn't a subcommand")


def check(target: Target, name: str, source: Path | str) -> None:
    """Refuse values of the right type that can't work.

    Raises: ConsoleError(CONFIG).
    """
    key = f"targets.{name}"

    def require(holds: bool, field: str, found: object, expected: str) -> None:
        if not holds:
            _complain(source, f"{key}.{field}", f"found {_shown(found)}", f"expected {expected}")

    require(bool(target.host.strip()), "host", target.host, 'an address, a Host of ~/.ssh/config, or "local"')
    require(not target.host.startswith("-"), "host", target.host, "no leading '-'")
    require(target.port is None or 0 < target.port < 65536, "port", target.port, "1 to 65535")
    require(target.cwd.startswith("/"), "cwd", target.cwd, "an absolute path")
    require(target.log.startswith("/"), "log", target.log, "an absolute path, such as /workspace/train_{name}.log")
    for path in target.caches:
        require(path.startswith("/"), "caches", path, "absolute paths")
    for key_name in target.env:
        require(bool(key_name) and "=" not in key_name and "\0" not in key_name, "env", key_name, "names without '='")
    require(all(target.command), "command", list(target.command), "no empty words")
    require(all(target.exec), "exec", list(target.exec), "no empty words")
    _check_template(require, "name", target.name, {"n", "time"})
    require("/" not in target.name, "name", target.name, "no '/'")
    _check_template(require, "log", target.log, {"name", "n", "time"})
    require(
        hasattr(signal, f"SIG{target.stop.signal}"), "stop.signal", target.stop.signal, "a signal's name, such as TERM"
    )
    require(target.stop.grace_s >= 0, "stop.grace_s", target.stop.grace_s, "seconds, 0 or more")
    require(
        target.gpus.expected is None or target.gpus.expected >= 0, "gpus.expected", target.gpus.expected, "0 or more"
    )
    for field in Deadlines.__struct_fields__:
        value = getattr(target.deadlines, field)
        require(value > 0, f"deadlines.{field}", value, "seconds, more than 0")
    _check_metrics(require, target.metrics)


def _check_metrics(require: Any, metrics: Metrics) -> None:
    tokens = metrics.tokens_per_step
    require(tokens is None or tokens > 0, "metrics.tokens_per_step", tokens, "a positive number of tokens")
    if metrics.format == "auto":
        return
    # Only here: the tables of formats and what reads them are a tenth of the time that the command line has.
    from console import formatfile
    from console.state.formatrules import FormatError
    from console.state.formats import find_format

    try:
        chosen = formatfile.resolve(metrics.format)
        if isinstance(chosen, str):
            find_format(chosen)
    except FormatError as exc:
        require(False, "metrics.format", metrics.format, f"a usable format: {exc}")


def is_format_file(chosen: str) -> bool:
    """Whether `metrics.format` names a file, not a known format or a pattern."""
    return "(?P<" not in chosen and (chosen.endswith(".toml") or "/" in chosen)


def _check_template(require: Any, field: str, template: str, known: set[str]) -> None:
    try:
        used = {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
    except ValueError as exc:
        require(False, field, template, f"a template ({exc})")
        return
    expected = "only " + ", ".join(f"{{{name}}}" for name in sorted(known))
    require(used <= known, field, template, expected)


def pick(config: Config, name: str | None, path: Path) -> tuple[str, Target]:
    """Return the target that `name` means; without a name the default one, or the only one.

    Raises: ConsoleError(CONFIG) naming the targets there are.
    """
    chosen = name or config.default_target
    if chosen is None and len(config.targets) == 1:
        chosen = next(iter(config.targets))
    if chosen is None:
        found = "no default_target" if config.targets else "no targets"
        _complain(path, "default_target", found, f"name one of: {', '.join(config.targets) or '(none)'}")
    if chosen not in config.targets:
        _complain(path, f"targets.{chosen}", "no such target", _expected_one_of(chosen, config.targets))
    return chosen, config.targets[chosen]


def with_flags(target: Target, flags: Mapping[str, Any]) -> Target:
    """Return `target` with the given flags in place of its own values.

    Raises: ConsoleError(CONFIG) where a flag's value doesn't fit.
    """
    body = {key: value for key, value in msgspec.to_builtins(target).items() if value is not None}
    body.update(flags)
    try:
        changed = msgspec.convert(body, Target)
    except msgspec.ValidationError as exc:
        _complain_of_type("command line", "flags", body, str(exc))
    check(changed, "flags", "command line")
    return changed


def _complain(source: Path | str, key: str, found: str, expected: str) -> NoReturn:
    where = f"{source}: {key}: " if key else f"{source}: "
    raise ConsoleError(Reason.CONFIG, f"{where}{found}; {expected}", Exit.USAGE)


def _complain_of_type(source: Path | str, key: str, body: dict[str, Any], message: str) -> NoReturn:
    """Turn msgspec's `Expected `int`, got `str` - at `$.gpus.expected`` into our four facts."""
    expected, _, at = message.partition(" - at ")
    inner = at.strip("`").removeprefix("$").removeprefix(".")
    found: Any = body
    for part in re.findall(r"[^.\[\]]+", inner):
        if isinstance(found, dict) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdigit() and int(part) < len(found):
            found = found[int(part)]
        else:
            break
    wanted = re.sub(r"`([^`]*)`", lambda match: _kinds_in_words(match[1]), expected.partition(", got")[0])
    wanted = wanted[:1].lower() + wanted[1:]
    _complain(source, f"{key}.{inner}" if inner else key, f"found {_shown(found)}", wanted)


def _kinds_in_words(kinds: str) -> str:
    """Say msgspec's `int | null` as a person would; TOML has no null."""
    words = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false", "array": "a list"}
    words["object"] = "a table"
    return " or ".join(words.get(kind, kind) for kind in kinds.split(" | ") if kind != "null")


def _refuse_unknown(source: Path, key: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    names = list(known)
    for name in table:
        if name not in names:
            full = f"{key}.{name}" if key else name
            _complain(source, full, "unknown key", _expected_one_of(name, names))


def _expected_one_of(name: str, known: Iterable[str]) -> str:
    names = list(known)
    nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    listed = "expected one of: " + ", ".join(names) if names else "there are none"
    return f"did you mean {nearest[0]!r}? ({listed})" if nearest else listed


def _shown(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    kind = {bool: "a boolean", int: "a whole number", float: "a number", str: "text", list: "a list", dict: "a table"}
    return f"{text[:80]} ({kind.get(type(value), type(value).__name__)})"
