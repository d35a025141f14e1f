"""Which lines of a log match: a text, a regular expression, or the console's rule for errors, sent as data.

What is matched is a line as it is shown: escapes removed, bad UTF-8 replaced; of a progress bar each state by itself
and what was glued to its end. Only loglines imports this module.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Optional, Tuple

_ESCAPE = re.compile(
    rb"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b]{0,2048}(?:\x07|\x1b\\)|\x1b[()*+][0-9A-Za-z]"
)
_BAR = re.compile(rb"\d{1,3}%\|[^|]*\|[^\[\]|]{1,80}\[[^\]]*\]")
_LEVEL_WORDS = (b"E0", b"E1", b"F0", b"F1", b".cpp:", b".cc:", b".cu:", b".py:")
"""What stands in a line with a level of glog's: the month, or the source file."""
_MOST_CHARS = 1 << 16
"""Of one line: what is behind them is not seen by a pattern."""

Span = Tuple[int, int]


class Matcher:
    """Finds the matching lines of a block of whole lines."""

    def __init__(self, query: Dict[str, Any]) -> None:
        """Raises: ValueError for a pattern that can't be used."""
        rule = query.get("errors")
        self._rule = _Errors(rule) if rule else None
        text = str(query.get("pattern") or "")
        self._fold = bool(query.get("ignore_case"))
        self._needle: Optional[bytes] = None
        self._hint = b""
        if query.get("literal"):
            if text and text.isascii():
                self._needle = text.lower().encode("ascii") if self._fold else text.encode("ascii")
            text = re.escape(text)
        else:
            # What must stand in a line that matches, whatever else must.
            hint = str(query.get("needle") or "")
            self._hint = (hint.lower() if self._fold else hint).encode("ascii", "replace")
        try:
            self._pattern = re.compile(text, re.IGNORECASE if self._fold else 0)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"not a pattern: {error}") from error

    def hits(self, data: bytes, tail: bytes = b"") -> List[Span]:
        """Return start and end (its newline included) of each line that matches; with a tail, `data` is one line."""
        if tail:
            return [(0, len(data))] if self._matches(data) or self._matches(tail) else []
        if self._rule is not None:
            candidates = self._rule.candidates(data)
        elif self._needle is not None:
            hay = data.lower() if self._fold else data
            candidates = _lines_with(self._needle, hay)
            if b"\x1b" not in data:
                return candidates
            candidates = _all_lines(data)  # an escape may stand in the middle of the text
        elif self._hint and b"\x1b" not in data and b"\t" not in data:
            candidates = _lines_with(self._hint, data.lower() if self._fold else data)
        else:
            candidates = _all_lines(data)
        return [span for span in candidates if self._matches(data[span[0] : span[1]])]

    def _matches(self, line: bytes) -> bool:
        if b"\r" not in line and b"%|" not in line:
            return self._test(_clean(line))
        return any(self._test(_clean(part)) for part in _records(line) if part.strip())

    def _test(self, text: str) -> bool:
        return self._rule.test(text) if self._rule is not None else self._pattern.search(text) is not None


class _Errors:
    """The rule of console/state/linekind.py: its words and patterns come over the wire, its order stands here."""

    def __init__(self, rule: Dict[str, Any]) -> None:
        self._prefix = re.compile(rule["prefix"], re.VERBOSE)
        self._here, self._anywhere = re.compile(rule["here"]), re.compile(rule["anywhere"])
        self._after, self._unless = re.compile(rule["after"]), re.compile(rule["unless"])
        self._level = re.compile(rule["level"])
        self._words = [str(word) for word in rule["words"]]
        self._raw_words = [word.encode("ascii") for word in self._words] + list(_LEVEL_WORDS)

    def candidates(self, data: bytes) -> List[Span]:
        found = set()
        for word in self._raw_words:
            found.update(_lines_with(word, data))
        return sorted(found)

    def test(self, text: str) -> bool:
        prefix = self._prefix.match(text)
        start = prefix.end() if prefix else 0
        level = self._level.match(text, start)
        if level is not None and level.group("level") in "EF":
            return True
        if not any(word in text for word in self._words):
            return False
        if self._here.match(text, start) or self._anywhere.search(text):
            return True
        return self._after.search(text) is not None and self._unless.search(text) is None


def _records(line: bytes) -> Iterator[bytes]:
    """Give the states of a progress bar, and what was glued to the end of one."""
    for part in line.split(b"\r"):
        start = 0
        for bar in _BAR.finditer(part):
            yield part[start : bar.end()]
            start = bar.end()
        yield part[start:]


def _clean(line: bytes) -> str:
    if b"\x1b" in line:
        line = _ESCAPE.sub(b"", line)
    return line.rstrip(b"\r\n").decode("utf-8", "replace").expandtabs(8)[:_MOST_CHARS]


def _line_around(data: bytes, at: int) -> Span:
    end = data.find(b"\n", at) + 1
    return data.rfind(b"\n", 0, at) + 1, end or len(data)


def _lines_with(needle: bytes, data: bytes) -> List[Span]:
    found = []
    at = data.find(needle)
    while at >= 0:
        span = _line_around(data, at)
        found.append(span)
        at = data.find(needle, span[1])
    return found


def _all_lines(data: bytes) -> List[Span]:
    spans, start = [], 0
    while start < len(data):
        end = data.find(b"\n", start) + 1 or len(data)
        spans.append((start, end))
        start = end
    return spans
