"""What a rate may be set against: never one that counts other tokens. The one rule for all who compare rates. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from console.state.formatrules import Scope

_COUNTED: Final[dict[str, str]] = {
    Scope.GLOBAL: "all GPUs",
    Scope.DERIVED: "all GPUs",
    Scope.PER_DEVICE: "one GPU",
    Scope.RANK: "one rank",
}


def unlike(ours: str | None, theirs: str | None) -> tuple[str, str] | None:
    """Return whose tokens two rates of these scopes count, where that differs; None where it doesn't, or where the
    scope of one isn't known."""
    one, other = (None if scope is None else _COUNTED.get(scope, scope) for scope in (ours, theirs))
    return (one, other) if one and other and one != other else None


class Baseline(Struct, frozen=True, kw_only=True):
    """What a run's rate is set against; nothing where there is no rate."""

    tok_s: float | None = None
    name: str = ""
    scope: str | None = None
    """As the log of its run states it; None of a number that somebody gave, which is meant as this run's log counts."""

    def against(self, scope: str | None) -> float | None:
        """Return the rate to set one of that scope against; None where there is none, or it counts other tokens."""
        return self.tok_s if unlike(scope, self.scope) is None else None

    def why_not(self, scope: str | None) -> str:
        """Say why a rate of that scope is not set against it; empty where it is, or where there is none."""
        differing = unlike(scope, self.scope) if self.tok_s is not None else None
        return f"{self.name} counts the tokens of {differing[1]}, this run of {differing[0]}" if differing else ""
