"""What is so just now, as far as it decides which actions there are: verdict, screen in front, link, run."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from console.model import LinkState, Snapshot, Verdict
from console.ui.present.contact import needs_first_contact
from console.ui.present.facts import is_stopping


class Face(StrEnum):
    """The screens of a target; a digit each brings them to the front."""

    OVERVIEW = "overview"
    GPUS = "gpus"
    LOG = "log"
    RUNS = "runs"
    EVENTS = "events"


class Situation(Struct, frozen=True, kw_only=True):
    """What decides which actions there are and how they are called."""

    verdict: Verdict
    face: Face = Face.OVERVIEW
    read_only: bool = False
    link_up: bool = True
    link_lost: bool = False
    run_alive: bool = False
    good_run: bool = False
    """A run before this one reached stepping, and its settings are known."""
    stopping: bool = False
    """A stop is under way."""
    contact: bool = False
    """The page of first contact is shown."""
    unwritten: bool = False
    """The target stands in no config file yet."""
    searching: bool = False
    following: bool = True
    replay: bool = False
    """A recording is played."""
    panels: bool = True
    """There is room for panels to zoom and to switch."""
    comparing: bool = False
    """Two runs stand side by side."""
    past: bool = False
    """A run of before is shown."""
    settings_known: bool = True
    """Of the run of before that is shown or chosen."""
    plotted: bool = False
    """There are curves to be drawn."""

    @property
    def launching(self) -> bool:
        return self.verdict is Verdict.LAUNCHING

    @property
    def failed(self) -> bool:
        return self.verdict in (Verdict.FAILED, Verdict.ENDED, Verdict.INTERRUPTED, Verdict.HOST_RESTARTED)


def situation_of(
    snapshot: Snapshot,
    *,
    face: Face,
    read_only: bool,
    watching: bool = False,
    searching: bool = False,
    following: bool = True,
    panels: bool = True,
    comparing: bool = False,
    unwritten: bool = False,
    replay: bool = False,
    past: bool = False,
    settings_known: bool = True,
    plotted: bool = False,
) -> Situation:
    return Situation(
        verdict=snapshot.verdict, face=face, read_only=read_only or snapshot.read_only,
        link_up=snapshot.link.state is LinkState.UP,
        link_lost=snapshot.link.state in (LinkState.LOST, LinkState.REFUSED),
        run_alive=bool(snapshot.run and snapshot.run.alive), good_run=snapshot.good is not None,
        stopping=is_stopping(snapshot),
        contact=face is Face.OVERVIEW and needs_first_contact(snapshot) and not watching,
        searching=searching, following=following, panels=panels, unwritten=unwritten, comparing=comparing,
        replay=replay, past=past, settings_known=settings_known, plotted=plotted,
    )  # fmt: skip
