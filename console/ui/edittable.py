"""What one restart changes, as a table with undo: environment, arguments, note. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from enum import StrEnum

import msgspec
from msgspec import Struct

from console.model import Overrides

_SECRET = re.compile(  # as on the host, console/host/secretenv.py
    r"KEY|TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|(?:^|_)(?:PASS|AUTH(?!_SOCK))(?:_|$)|_PWD(?:_|$)",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
MASK = "••••••••"


def is_secret(name: str) -> bool:
    """Whether a name looks as if its value should not be read over a shoulder."""
    return _SECRET.search(name) is not None


def bad_name(name: str) -> str:
    return "" if _NAME.match(name) else "letters, digits and _ only, not first a digit"


def bad_args(text: str) -> str:
    try:
        shlex.split(text)
    except ValueError as error:
        return f"quotes as in a shell: {error}"
    return ""


class Kind(StrEnum):
    ENV = "env"
    ARGS = "args"
    NOTE = "note"


class Row(Struct, frozen=True, kw_only=True):
    name: str
    value: str | None
    """None: unset for this run."""
    declared: str | None
    """What the config says; None where it doesn't name it."""
    kind: Kind = Kind.ENV

    @property
    def changed(self) -> bool:
        return self.value != self.declared

    def shown(self, value: str | None) -> str:
        if value is None:
            return "unset" if self.kind is Kind.ENV else "none"
        return MASK if self.kind is Kind.ENV and is_secret(self.name) else value


class _Values(Struct, frozen=True, kw_only=True):
    env: dict[str, str | None]
    args: tuple[str, ...] = ()
    note: str = ""


class EditTable:
    """Edits are steps; every step can be undone."""

    def __init__(self, declared: Mapping[str, str], overrides: Overrides) -> None:
        self._declared = dict(declared)
        env: dict[str, str | None] = {**declared, **overrides.env, **dict.fromkeys(overrides.unset)}
        self._now = _Values(env=env, args=overrides.args, note=overrides.note)
        self._steps: list[_Values] = []

    @property
    def rows(self) -> list[Row]:
        """The environment by name, then the arguments and the note."""
        now = self._now
        env = [Row(name=n, value=v, declared=self._declared.get(n)) for n, v in sorted(now.env.items())]
        args = Row(name="arguments", value=shlex.join(now.args) or None, declared=None, kind=Kind.ARGS)
        return [*env, args, Row(name="note", value=now.note or None, declared=None, kind=Kind.NOTE)]

    @property
    def can_undo(self) -> bool:
        return bool(self._steps)

    def _step(self, now: _Values) -> None:
        if now != self._now:
            self._steps.append(self._now)
            self._now = now

    def put(self, name: str, value: str | None) -> None:
        self._step(msgspec.structs.replace(self._now, env={**self._now.env, name: value}))

    def put_args(self, text: str) -> None:
        """Take the words of a shell line as arguments. Raises: ValueError where its quotes don't match."""
        self._step(msgspec.structs.replace(self._now, args=tuple(shlex.split(text))))

    def put_note(self, text: str) -> None:
        self._step(msgspec.structs.replace(self._now, note=text.strip()))

    def unset(self, row: Row) -> None:
        """Take a row's value out: a name that only this run had goes, one of the config is unset."""
        match row.kind:
            case Kind.ARGS:
                self.put_args("")
            case Kind.NOTE:
                self.put_note("")
            case Kind.ENV if row.name in self._declared:
                self.put(row.name, None)
            case Kind.ENV:
                left = {name: value for name, value in self._now.env.items() if name != row.name}
                self._step(msgspec.structs.replace(self._now, env=left))

    def undo(self) -> bool:
        if not self._steps:
            return False
        self._now = self._steps.pop()
        return True

    def revert(self) -> None:
        """Environment and arguments as in the config; this, too, can be undone. The note is no setting and stays."""
        self._step(_Values(env=dict(self._declared), note=self._now.note))

    @property
    def env(self) -> dict[str, str]:
        """The environment as it would be declared."""
        return {name: value for name, value in self._now.env.items() if value is not None}

    @property
    def args(self) -> tuple[str, ...]:
        return self._now.args

    @property
    def is_changed(self) -> bool:
        """Whether environment or arguments differ from the config."""
        return self.env != self._declared or bool(self.args)

    def declared(self) -> None:
        """Take the environment as what the config says from now on, and the arguments as part of its command."""
        self._declared = self.env
        self._now = _Values(env=dict(self._declared), note=self._now.note)
        self._steps.clear()

    def overrides(self, base: Overrides) -> Overrides:
        """Return `base` with the differences to the config."""
        rows = [row for row in self.rows if row.kind is Kind.ENV]
        env = {r.name: r.value for r in rows if r.value is not None and r.changed}
        unset = tuple(r.name for r in rows if r.value is None and r.declared is not None)
        return msgspec.structs.replace(base, env=env, unset=unset, args=self._now.args, note=self._now.note)
