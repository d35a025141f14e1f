"""How bad something is. On its own so that the command line's help does not load the model for it."""

from __future__ import annotations

from enum import StrEnum


class Severity(StrEnum):
    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
