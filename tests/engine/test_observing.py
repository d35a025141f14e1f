"""What a snapshot proves of its run, for the ledger."""

from __future__ import annotations

from msgspec.structs import replace

from console.engine.observing import observed
from tests.ui import fixtures


def test_how_far_a_run_came_is_not_told_from_half_its_log() -> None:
    """A console that is closed while it reads would put its row back to where it had got."""
    whole = fixtures.HEALTHY
    half = replace(whole, log=replace(whole.log, unread=True))

    assert observed(whole).last_step == whole.progress.step
    assert (observed(half).stepped, observed(half).last_step, observed(half).last_loss) == (True, None, None)
    assert observed(half).peaks == observed(whole).peaks
