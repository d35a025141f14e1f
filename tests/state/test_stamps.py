"""The time that a log line says it was written at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.state.stamps import read_stamp

# 2026-02-11 07:15:09 UTC, by `date -u -d '2026-02-11 07:15:09' +%s`
AT = 1770794109.0


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("[2026-02-11 07:15:09] step 3 | loss 2.5", AT),
        ("[rank0]:[titan] 2026-02-11 07:15:09,551 - root - INFO - step: 3", AT + 0.551),
        (" [2026-02-11 07:15:09.551200] iteration 40/900", AT + 0.5512),
        ("2026-02-11T07:15:09Z step", AT),
        ("2026-02-11T08:15:09+01:00 step", AT),
        ("2026-02-11T02:45:09-0430 step", AT),
        ("2026/02/11 07:15:09 step", AT),
        ("step 3 | loss 2.5", None),
        ("[07:15:09] step 3", None),
        ("2026-13-11 07:15:09", None),
        ("2026-02-30 07:15:09", None),
        ("x" * 200 + " 2026-02-11 07:15:09", None),
    ],
)
def test_stamp_is_read_where_it_has_a_date(text: str, at: float | None) -> None:
    assert read_stamp(text, 0) == (pytest.approx(at) if at is not None else None)


def test_stamp_without_a_zone_is_local_time_of_the_host() -> None:
    assert read_stamp("[2026-02-11 09:15:09] step 3", 7200) == AT
    assert read_stamp("2026-02-11T07:15:09Z step", 7200) == AT


@given(st.text(alphabet="0123456789-/: TZ+.,[]", max_size=60))
def test_no_text_raises(text: str) -> None:
    read_stamp(text, 0)
