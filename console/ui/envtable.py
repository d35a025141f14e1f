"""The environment of one restart as a table with undo: what the config declares, and what this run changes. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from console.model import Overrides

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
MASK = "••••••••"


def is_secret(name: str) -> bool:
    """Whether a name looks as if its value should not be read over a shoulder."""
    return _SECRET.search(name) is not None


def bad_name(name: str) -> str:
    return "" if _NAME.match(name) else "letters, digits and _ only, not first a digit"


class Row(Struct, frozen=True, kw_only=True):
    name: str
    value: str | None
    """None: unset for this run."""
    declared: str | None
    """What the config says; None where it doesn't name it."""

    @property
    def changed(self) -> bool:
        return self.value != self.declared

    def shown(self, value: str | None) -> str:
        if value is None:
            return "unset"
        return MASK if is_secret(self.name) else value


class EnvTable:
    """Edits are steps; every step can be undone."""

    def __init__(self, declared: Mapping[str, str], overrides: Overrides) -> None:
        self._declared = dict(declared)
        values: dict[str, str | None] = {**declared, **overrides.env}
        values.update(dict.fromkeys(overrides.unset))
        self._values = values
        self._steps: list[dict[str, str | None]] = []

    @property
    def rows(self) -> list[Row]:
        return [Row(name=n, value=v, declared=self._declared.get(n)) for n, v in sorted(self._values.items())]

    @property
    def can_undo(self) -> bool:
        return bool(self._steps)

    def put(self, name: str, value: str | None) -> None:
        if name in self._values and self._values[name] == value:
            return
        self._steps.append(dict(self._values))
        self._values[name] = value

    def unset(self, name: str) -> None:
        """Take a name out: one that only this run had goes, one of the config is unset."""
        if name not in self._values:
            return
        if name in self._declared:
            self.put(name, None)
            return
        self._steps.append(dict(self._values))
        del self._values[name]

    def undo(self) -> bool:
        if not self._steps:
            return False
        self._values = self._steps.pop()
        return True

    def revert(self) -> None:
        """As in the config; this, too, can be undone."""
        if self._values != self._declared:
            self._steps.append(dict(self._values))
            self._values = dict(self._declared)

    def overrides(self, base: Overrides) -> Overrides:
        """Return `base` with the differences to the config."""
        env = {r.name: r.value for r in self.rows if r.value is not None and r.changed}
        unset = tuple(r.name for r in self.rows if r.value is None and r.declared is not None)
        return msgspec.structs.replace(base, env=env, unset=unset)
