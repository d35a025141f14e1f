"""What is said of a run that nobody knows."""

import pytest

from console.engine.unknown import unknown_run
from console.reasons import Exit, Reason


@pytest.mark.parametrize(
    ("which", "known", "hint"),
    [
        ("slamed3", ["slammed12", "slammed3"], "; did you mean slammed3?"),
        ("slammed", ["slammed4", "slammed3"], "; did you mean slammed4?"),  # both are as near: the newer one
        ("r-0b6970bf", ["", "slammed4", "r-0b6970be"], "; did you mean r-0b6970be?"),
        ("drafter", ["slammed4", "slammed3"], ""),
        ("slammed", [], ""),
    ],
)
def test_a_name_that_is_nearly_one_is_answered_with_that(which: str, known: list[str], hint: str) -> None:
    error = unknown_run(which, "ct200", known)

    assert (error.reason, error.exit_code) == (Reason.RUN_UNKNOWN, Exit.REFUSED)
    assert error.detail == f"{which}: no such run of ct200{hint}"
