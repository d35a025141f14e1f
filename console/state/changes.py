"""What differs between the settings of two runs: environment, arguments, directory, scripts and their modes. Pure.

Secret-looking values are keyed hashes already, and stay hidden: that one has changed is all that is told.
"""

from __future__ import annotations

import shlex

from console.model import Change, Changes, PastRun, Script, Settings
from console.protocol import RunRecord
from console.state import texts

HIDDEN = "(hidden)"
_HASH = "hmac:"
_SHOWN_DIGITS = 8


def settings_of(record: RunRecord) -> Settings:
    """Return what a run was started with."""
    return Settings(argv=record.argv, cwd=record.cwd, env=record.env, unset=record.unset, scripts=record.scripts)


def changes(good: PastRun, now: Settings) -> Changes:
    """Return what differs from a run that was good, the likeliest culprits first: environment, command, files."""
    then = good.settings
    items = [*_env(then, now), *_command(then, now), *_files(then.scripts, now.scripts)]
    return Changes(since=good.name or good.id, since_id=good.id, items=tuple(items), same=_same(then, now, items))


def _env(then: Settings, now: Settings) -> list[Change]:
    before, after = then.env, now.env
    found = [
        Change(kind="env", what=name, then=shown(before.get(name)), now=shown(after.get(name)))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
    # What only one of them took out of the login environment, and neither declared.
    taken = sorted((set(then.unset) ^ set(now.unset)) - before.keys() - after.keys())
    for name in taken:
        was, is_ = name in then.unset, name in now.unset
        found.append(Change(kind="env", what=name, then=_taken_out(was), now=_taken_out(is_)))
    return found


def shown(value: str | None) -> str | None:
    return HIDDEN if value is not None and value.startswith(_HASH) else value


def _taken_out(is_unset: bool) -> str | None:
    return None if is_unset else "the login's"


def _command(then: Settings, now: Settings) -> list[Change]:
    found = []
    if then.argv != now.argv:
        found.append(Change(kind="argv", then=shlex.join(then.argv), now=shlex.join(now.argv)))
    if then.cwd != now.cwd:
        found.append(Change(kind="cwd", then=then.cwd, now=now.cwd))
    return found


def _files(then: dict[str, Script], now: dict[str, Script]) -> list[Change]:
    """Only what both runs had a look at: which scripts are found depends on what ran at that moment."""
    found = []
    for path in sorted(then.keys() & now.keys()):
        before, after = then[path], now[path]
        if before.sha256 != after.sha256:
            digests = (before.sha256[:_SHOWN_DIGITS], after.sha256[:_SHOWN_DIGITS])
            found.append(Change(kind="file", what=path, then=digests[0], now=digests[1], edited_at=after.mtime))
        if before.mode != after.mode:
            found.append(Change(kind="file", what=path, then=f"mode {_octal(before.mode)}", now=_octal(after.mode)))
    return found


def _octal(mode: int | None) -> str:
    return "?" if mode is None else f"{mode:04o}"


def _same(then: Settings, now: Settings, items: list[Change]) -> tuple[str, ...]:
    changed = {(each.kind, each.what) for each in items}
    files = [path for path in sorted(then.scripts.keys() & now.scripts.keys()) if ("file", path) not in changed]
    words = [path.rpartition("/")[2] for path in files]
    words += [kind for kind in ("argv", "cwd") if (kind, "") not in changed]
    names = sum(("env", name) not in changed for name in then.env.keys() & now.env.keys())
    return (*words, texts.plural(names, "env name")) if names else tuple(words)
