"""The quick question for an error line has the same answer as the whole classification."""

import pytest

from console.state.formats import FORMATS
from console.state.linekind import LineKind, classify, is_error

_LINES = [line for fmt in FORMATS for line in (*(text for text, _ in fmt.samples), *fmt.refuses)]
_ERRORS = [
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "2026-02-11 07:14:58,100 - root - ERROR - loader failed",
    "E0211 07:14:58.100123 4121 api.py:12] worker failed",
    "Traceback (most recent call last):",
    "/root/run.sh: line 12: 4121 Killed                  python train.py",
]


@pytest.mark.parametrize("text", _ERRORS)
def test_error_lines_are_found(text: str) -> None:
    assert is_error(text)
    assert classify(text) is LineKind.ERROR


def test_every_line_of_the_formats_is_judged_alike() -> None:
    assert [text for text in _LINES if is_error(text) != (classify(text) is LineKind.ERROR)] == []
