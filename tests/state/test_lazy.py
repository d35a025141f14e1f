"""Patterns that are compiled when they are first used."""

import re

import pytest

from console.state.lazy import lazy


def test_pattern_does_what_a_compiled_one_does() -> None:
    pattern = lazy(r"(?P<key>\w+)=(?P<value>\d+)", re.IGNORECASE)

    match = pattern.search("a LOSS=12", 2)
    assert match is not None
    assert match["key"] == "LOSS"
    assert pattern.fullmatch("a=1 ") is None
    assert [found["value"] for found in pattern.finditer("a=1 b=2")] == ["1", "2"]
    assert dict(pattern.groupindex) == {"key": 1, "value": 2}
    assert pattern.pattern == r"(?P<key>\w+)=(?P<value>\d+)"


def test_pattern_is_compiled_once_and_not_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_ = re.compile

    def noted(source: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append(source)
        return compile_(source, flags)

    monkeypatch.setattr(re, "compile", noted)

    pattern = lazy("a+")
    assert compiled == []
    assert pattern.search("caat") is not None
    assert pattern.match("aa") is not None

    assert compiled == ["a+"]


def test_what_a_pattern_has_not_is_missing() -> None:
    with pytest.raises(AttributeError):
        lazy("a").nonsense  # type: ignore[attr-defined]  # noqa: B018
