"""Every reason has its words."""

from pathlib import Path

import pytest

import console
from console.model import Severity
from console.reasons import CATALOGUE, Reason


def test_every_reason_has_an_entry() -> None:
    assert set(CATALOGUE) == set(Reason)


@pytest.mark.parametrize("reason", list(Reason))
def test_an_entry_says_what_it_means_what_is_safe_and_what_to_do(reason: Reason) -> None:
    entry = CATALOGUE[reason]

    assert entry.title
    assert entry.meaning.endswith((".", ":"))
    assert entry.safe
    assert entry.next
    assert entry.severity is not Severity.OK


@pytest.mark.parametrize("reason", list(Reason))
def test_words_of_an_entry_are_one_line_and_fit_a_sentence(reason: Reason) -> None:
    entry = CATALOGUE[reason]

    for words in (entry.title, entry.meaning, entry.safe, *entry.next):
        assert "\n" not in words
        assert words == words.strip()
    # The title stands behind `FAILED spawned` on one line of the narrowest screen.
    assert len(entry.title) <= 56


def test_what_is_no_failure_is_not_called_an_error() -> None:
    for reason in (Reason.COMPLETED, Reason.STOPPED_BY_OPERATOR, Reason.OUTPUT_BUFFERED, Reason.FORMAT_UNKNOWN):
        assert CATALOGUE[reason].severity is Severity.INFO


def test_every_reason_is_said_by_somebody() -> None:
    package = Path(console.__file__).parent
    words_only = {"reasons.py", "catalogue.py", "endings.py"}
    source = "\n".join(path.read_text("utf-8") for path in package.rglob("*.py") if path.name not in words_only)

    silent = [r for r in Reason if f"Reason.{r.name}" not in source and f'"{r}"' not in source]

    assert silent == []
