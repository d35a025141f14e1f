"""What an entry of the catalogue is made of. Only `console.catalogue` and `console.endings` write them."""

from __future__ import annotations

from dataclasses import dataclass

from console.severity import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the catalogue says of one reason."""

    title: str
    """What happened, without a subject of its own: fits behind `FAILED spawned`."""
    meaning: str
    safe: str
    """What did not happen and what is lost, where the case itself states nothing better."""
    next: tuple[str, ...]
    severity: Severity = Severity.ERROR


def error(title: str, meaning: str, safe: str, *steps: str) -> Entry:
    return Entry(title=title, meaning=meaning, safe=safe, next=steps)


def warning(title: str, meaning: str, safe: str, *steps: str) -> Entry:
    return Entry(title=title, meaning=meaning, safe=safe, next=steps, severity=Severity.WARNING)


def info(title: str, meaning: str, safe: str, *steps: str) -> Entry:
    return Entry(title=title, meaning=meaning, safe=safe, next=steps, severity=Severity.INFO)
