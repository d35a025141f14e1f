"""What commands have in common: option types, the options that lead to a target, and the target they mean."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from console.config import Target

JSON = "--json"
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"([0-9]+)(ms|[smhd])")
_PARTS = re.compile(rf"{_PART.pattern}(?: ?{_PART.pattern})+")
WAITABLE = ("accepted", "spawned", "cuda", "stepping", "steady", "checkpoint", "exit", "free")


@dataclass(slots=True)
class Called:
    """What `main` must know of a command that it has to report the failure of."""

    as_json: bool = False
    target: str | None = None
    way: str = ""
    """The flags that lead to the target, for the commands that we advise: ` --config /x/config.toml`."""


class Wanted(click.ParamType[str]):
    """What to wait for: a word, or `step=300`."""

    name = "|".join((*WAITABLE, "step=N"))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        word, _, number = value.partition("=")
        if value not in WAITABLE and not (word == "step" and number.isascii() and number.isdigit()):
            self.fail(f"{value!r} is not one of {', '.join(WAITABLE)}, step=N", param, ctx)
        return str(value)


class FaultName(click.ParamType[str]):
    """A fault of the demo, with its argument: `stall:5`; `list` prints them."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from console.demo import faults

        try:
            if value != "list":
                faults.parse(value)
        except ValueError as exc:
            self.fail(str(exc), param, ctx)
        return str(value)


class Seconds(click.ParamType[float]):
    """`15`, `15s`, `2m`, `1h` or `1h30m`: seconds as a float."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        parts = _PART.findall(value) if _PARTS.fullmatch(value) else [_number_and_unit(value)]
        try:
            seconds = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
        except (ValueError, KeyError):
            seconds = math.nan
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is no duration: expected 15, 15s, 2m or 1h30m", param, ctx)
        if seconds < 0:
            self.fail(f"{value!r} is negative", param, ctx)
        return seconds


def _number_and_unit(text: str) -> tuple[str, str]:
    number = text.rstrip("smhd")
    return number, text[len(number) :] or "s"


class Moment(click.ParamType[float]):
    """`10m` ago, `21:30` of the last 24 hours, `2026-11-29T21:30` in this machine's zone or a named one: Unix time."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from datetime import UTC, datetime, time, timedelta

        if isinstance(value, (int, float)):
            return float(value)
        now = datetime.now(UTC).astimezone()
        found: datetime | None = None
        no_moment = "is no moment: expected 10m, 21:30 or 2026-11-29T21:30"
        if ":" in value or "-" in value:
            try:
                if "-" not in value:
                    at = time.fromisoformat(value)
                    # Put to each day by itself: the clocks may have been changed since yesterday.
                    days = (datetime.combine(now.date() - timedelta(days=back), at).astimezone() for back in range(3))
                    found = next(each for each in days if each <= now)
                else:
                    found = datetime.fromisoformat(value).astimezone()
            except (ValueError, OverflowError, OSError):
                self.fail(f"{value!r} {no_moment}", param, ctx)
            if found > now:
                self.fail(f"{value!r} has not come yet", param, ctx)
            return found.timestamp()
        try:
            return now.timestamp() - Seconds().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} {no_moment}", param, ctx)


class Words(click.ParamType[list[str]]):
    """A command line in one argument, split as a shell would: `--exec 'pct exec 200 --'`."""

    name = "words"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        import shlex

        if isinstance(value, list):
            return value
        try:
            return shlex.split(value)
        except ValueError as exc:
            self.fail(f"{value!r} can't be split into words: {exc}", param, ctx)


def several(*options: Callable[..., Any]) -> Callable[..., Any]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


_FLAG_FIELDS = ("host", "user", "port", "jump", "identity", "known_hosts", "exec", "python", "state_dir")
_RUN_FIELDS = ("command", "cwd", "log", "match", "cache", "gpus")

target_options = several(
    click.option("--config", "config_path", type=click.Path(path_type=Path), help="Config file to use."),
    click.option("--host", help="Address, a Host of ~/.ssh/config, or 'local'; with it no config file is needed."),
    click.option("--user", help="Login on the host."),
    click.option("--port", type=int, help="SSH port."),
    click.option("--jump", help="Jump host, such as ops@jump."),
    click.option("--identity", help="Private key file."),
    click.option("--known-hosts", help="known_hosts file to check host keys with."),
    click.option("--exec", type=Words(), help="Words that enter the container: 'pct exec 200 --'."),
    click.option("--python", help="Interpreter on the host (default python3)."),
    click.option("--state-dir", help="Directory for run records on the host."),
    click.option("--command", type=Words(), help="What to run: '/root/run.sh'."),
    click.option("--cwd", help="Directory to run it in."),
    click.option("--log", help="Log file template: '/workspace/train_{name}.log'."),
    click.option("--match", multiple=True, help="Argument by which a run started by hand is recognised."),
    click.option("--cache", multiple=True, help="Cache directory to set aside before each start."),
    click.option("--gpus", type=int, help="How many GPUs the run must open."),
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
timeout_option = click.option("--timeout", type=Seconds(), help="Give up after this long (15s, 2m); code 20.")


def called() -> Called:
    return click.get_current_context().ensure_object(Called)


def choose(name: str | None, options: dict[str, Any]) -> tuple[str, Target]:
    """Return the target that name and flags mean, taking the target's options out of `options`."""
    from console import configfile
    from console.config import Target

    told = called()
    told.target, told.way = name, _way(options)
    path = options.pop("config_path") or configfile.default_path()
    flags = {key: value for key in _FLAG_FIELDS if (value := options.pop(key)) is not None}
    for key in _RUN_FIELDS:
        value = options.pop(key)
        if value is not None and value != ():
            flags |= {"cache": {"caches": value}, "gpus": {"gpus": {"expected": value}}}.get(key, {key: value})
    if "host" in flags and (name is None or not path.exists()):
        told.target = name or _adhoc_name(flags)
        configfile.check_name(told.target, "command line")
        return told.target, configfile.with_flags(Target(), flags)
    chosen, target = configfile.pick(configfile.load(path), name, path)
    told.target = chosen
    return chosen, configfile.with_flags(target, flags) if flags else target


def _way(options: dict[str, Any]) -> str:
    """Return the given flags that lead to the target, as they would be typed again."""
    import shlex

    words: list[str] = []
    for key in ("config_path", *_FLAG_FIELDS, *_RUN_FIELDS):
        flag, value = f"--{key.removesuffix('_path').replace('_', '-')}", options.get(key)
        for each in value if isinstance(value, tuple) else (value,):
            if each is not None:
                words += [flag, shlex.join(each) if isinstance(each, list) else str(each)]
    return f" {shlex.join(words)}" if words else ""


def _adhoc_name(flags: dict[str, Any]) -> str:
    """Name a target that is given by flags alone; the same flags give the same name, and so the same lock."""
    words = [flags["host"], *(word for word in flags.get("exec", []) if word.isdigit())]
    return "".join(char if char.isalnum() or char in "._-" else "-" for char in "-".join(words)).strip("-._") or "host"
