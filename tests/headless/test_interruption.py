"""What is said when a command is told to end, by how far it had come."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from console.headless.interruption import Standing, interrupted
from console.model import Accepted, Snapshot
from tests.ui import fixtures


def heard(snapshot: Snapshot, **known: Any) -> Standing:
    return Standing(engine=SimpleNamespace(snapshot=snapshot, has_word=True), **known)  # type: ignore[arg-type]


RUN = fixtures.HEALTHY.run
assert RUN is not None
assert RUN.id is not None
GOES_ON = f"the run goes on: {RUN.name} id={RUN.id} stepping step={fixtures.HEALTHY.progress.step}"
NONE = "the run goes on, if there is one: none was heard of yet"


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (Standing(), NONE),
        (
            Standing(wants="restart"),
            f"nothing was touched, the restart was not asked for yet; {NONE}",
        ),
        (heard(fixtures.HEALTHY), GOES_ON),
        (
            heard(fixtures.HEALTHY, wants="stop"),
            f"nothing was touched, the stop was not asked for yet; {GOES_ON}",
        ),
        (
            heard(fixtures.HEALTHY, wants="restart", asked="restart"),
            "whether the restart was taken is not known | next: ask for its status",
        ),
        (
            heard(
                fixtures.HEALTHY,
                wants="restart",
                asked="restart",
                accepted=Accepted(run_id="r-9", name="slammed9", action="restart"),
                follow_up="dflash-console wait r-9",
            ),
            "the restart goes on in its keeper: slammed9 id=r-9 stage=killing | next: dflash-console wait r-9",
        ),
        (
            heard(
                fixtures.HEALTHY,
                accepted=Accepted(run_id=RUN.id, name=RUN.name, action="restart"),
                follow_up="dflash-console wait r",
            ),
            f"{GOES_ON} | next: dflash-console wait r",
        ),
    ],
)
def test_it_is_said_what_goes_on_and_what_is_not_known(known: Standing, words: str) -> None:
    told = interrupted(signal.SIGTERM, known)

    assert told.detail == words
    assert told.exit_code == 143
