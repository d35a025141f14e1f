"""Every action: its keys, what it is called, and when there is it. Data; what is made of it stands in `actions`."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from console.model import Verdict
from console.ui.situation import Face, Situation


class Group(StrEnum):
    RUN = "Run"
    LOG = "Log"
    VIEW = "View"
    CONSOLE = "Console"


def _always(_: Situation) -> bool:
    return True


def _no_contact(situation: Situation) -> bool:
    return not situation.contact


def _log(situation: Situation) -> bool:
    """A log is shown."""
    return situation.face in (Face.OVERVIEW, Face.LOG) and not situation.contact


def _plots(situation: Situation) -> bool:
    """There are plots that can be switched."""
    return situation.face is Face.OVERVIEW and situation.panels and not situation.contact


_HANGS = frozenset({Verdict.STALLED, Verdict.SUSPENDED, Verdict.NOT_EXITED})


def _runs(situation: Situation) -> bool:
    return situation.face is Face.RUNS


def _events(situation: Situation) -> bool:
    return situation.face is Face.EVENTS


def _comparing(situation: Situation) -> bool:
    return situation.face is Face.RUNS and situation.comparing


class Action(Struct, frozen=True, kw_only=True):
    id: str
    keys: tuple[str, ...]
    """As Textual names them; the first is the one that is shown."""
    label: str
    help: str
    group: Group
    when: Callable[[Situation], bool] = _always
    changes_run: bool = False
    """Starts or stops something: `--read-only` removes it."""
    footer: Callable[[Situation], bool] | None = None
    """When the footer mentions it; None: never."""
    named: Callable[[Situation], str] | None = None
    """Its name where that depends on the situation."""
    last: bool = False
    """Stands at the right end of the footer and never goes."""
    priority: bool = False
    shown: str = ""
    """What the footer calls its key; empty: the key's own name."""

    def label_in(self, situation: Situation) -> str:
        return self.named(situation) if self.named is not None else self.label


def _gpus(situation: Situation) -> bool:
    return situation.face is Face.GPUS


def _replay(situation: Situation) -> bool:
    return situation.replay and not _runs(situation)


def _past(situation: Situation) -> bool:
    return situation.past and not _runs(situation)


def _views_runs(situation: Situation) -> bool:
    return not situation.replay and not situation.contact and not _runs(situation)


ACTIONS: tuple[Action, ...] = (
    Action(
        id="play", keys=("space",), label="pause", group=Group.VIEW, help="stop the recording, or go on", when=_replay
    ),
    Action(
        id="play_back",
        keys=("left_parenthesis",),
        label="10 s back",
        group=Group.VIEW,
        when=_replay,
        help="10 s back in the recording",
    ),
    Action(
        id="play_on",
        keys=("right_parenthesis",),
        label="10 s on",
        group=Group.VIEW,
        when=_replay,
        help="10 s on in the recording",
    ),
    Action(
        id="play_slower",
        keys=("minus",),
        label="slower",
        group=Group.VIEW,
        when=_replay,
        help="play the recording at half the speed",
    ),
    Action(
        id="play_faster",
        keys=("plus",),
        label="faster",
        group=Group.VIEW,
        when=_replay,
        help="play the recording at twice the speed",
    ),
    Action(
        id="play_previous",
        keys=("left_curly_bracket",),
        label="stage before",
        group=Group.VIEW,
        when=_replay,
        help="go to the beginning of the stage before",
    ),
    Action(
        id="play_next",
        keys=("right_curly_bracket",),
        label="next stage",
        group=Group.VIEW,
        when=_replay,
        help="go to the next stage, or to the end",
    ),
    Action(
        id="overview",
        keys=("1",),
        label="overview",
        group=Group.VIEW,
        help="verdict, plots, GPUs and log at a glance",
        footer=lambda s: s.face is not Face.OVERVIEW,
    ),
    Action(
        id="gpus",
        keys=("2",),
        label="GPUs",
        group=Group.VIEW,
        help="all that is known of each GPU, with its history",
        when=_no_contact,
    ),
    Action(
        id="log",
        keys=("3",),
        label="log",
        group=Group.VIEW,
        help="the log on the whole screen",
        when=_no_contact,
    ),
    Action(
        id="runs",
        keys=("4",),
        label="runs",
        group=Group.VIEW,
        help="the runs of this target; two of them side by side",
        when=_no_contact,
    ),
    Action(
        id="events",
        keys=("5",),
        label="events",
        group=Group.VIEW,
        help="what has happened, and what came while you were away",
        when=_no_contact,
    ),
    Action(
        id="reconnect",
        keys=("c",),
        label="reconnect now",
        group=Group.CONSOLE,
        help="try to reach the host at once instead of waiting for the next attempt",
        when=lambda s: s.link_lost,
        footer=_always,
    ),
    Action(
        id="watch",
        keys=("w",),
        label="watch",
        group=Group.RUN,
        help="show the plots, the log and the GPUs of a run started by hand",
        when=lambda s: s.contact,
        footer=_always,
    ),
    Action(
        id="configure",
        keys=("i",),
        label="write config",
        group=Group.RUN,
        help="add this target to the config file, with what was found of its run",
        when=lambda s: s.contact and s.unwritten,
        footer=_always,
    ),
    Action(
        id="restart",
        keys=("r",),
        label="restart",
        group=Group.RUN,
        changes_run=True,
        help="show the plan of a restart; nothing is touched before R in the plan",
        footer=lambda s: s.link_up and not s.launching and not _runs(s) and not _gpus(s),
        named=lambda s: "restart" if s.run_alive or s.failed else "start",
    ),
    Action(
        id="again",
        keys=("o",),
        label="old settings again",
        group=Group.RUN,
        changes_run=True,
        help="show the plan of a restart with the settings of the last run that reached stepping",
        when=lambda s: s.failed and s.good_run and not _runs(s),
        footer=lambda s: s.link_up,
    ),
    Action(
        id="stop",
        keys=("s",),
        label="stop",
        group=Group.RUN,
        changes_run=True,
        help="show the plan of a stop; nothing is touched before S in the plan",
        when=lambda s: s.run_alive or s.launching or not s.link_up,
        footer=lambda s: s.link_up and _no_contact(s) and not s.stopping and not _runs(s) and not _gpus(s),
    ),
    Action(
        id="diagnose",
        keys=("d",),
        label="diagnose",
        group=Group.RUN,
        help="save what a hung run can tell into a file; the run is not touched",
        when=lambda s: s.run_alive and not s.read_only,
        footer=lambda s: s.verdict in _HANGS and s.link_up,
    ),
    Action(
        id="view_again",
        keys=("o",),
        label="these settings again",
        group=Group.RUN,
        changes_run=True,
        help="show the plan of a restart with the settings of the run of before that is shown",
        when=_past,
        footer=lambda s: s.link_up and s.settings_known,
    ),
    Action(
        id="older",
        keys=("left_square_bracket",),
        label="run before",
        group=Group.VIEW,
        help="show the run before in every panel, as it was at its end; the live one goes on being watched",
        when=_views_runs,
        footer=lambda s: s.past,
    ),
    Action(
        id="newer",
        keys=("right_square_bracket",),
        label="run after",
        group=Group.VIEW,
        help="show the run after it; after the newest of them comes the live one again, as with esc",
        when=_past,
        footer=lambda s: s.past,
    ),
    Action(
        id="search",
        keys=("slash",),
        label="search",
        group=Group.LOG,
        help="search the whole log on the host as less does; small letters match capitals, too",
        when=_log,
        footer=lambda s: not s.failed and not s.launching,
    ),
    Action(
        id="next_hit",
        keys=("n",),
        label="next hit",
        group=Group.LOG,
        help="next hit of the search",
        when=_log,
        footer=lambda s: s.searching,
    ),
    Action(
        id="prev_hit",
        keys=("N",),
        label="previous hit",
        group=Group.LOG,
        help="previous hit of the search",
        when=_log,
    ),
    Action(
        id="next_error",
        keys=("e",),
        label="next error",
        group=Group.LOG,
        help="next error line of the log",
        when=_log,
        footer=_always,
        named=lambda s: "first error" if s.failed else "next error",
    ),
    Action(
        id="prev_error",
        keys=("E",),
        label="previous error",
        group=Group.LOG,
        help="previous error line of the log",
        when=_log,
    ),
    Action(
        id="follow",
        keys=("f", "F"),
        label="follow",
        group=Group.LOG,
        help="go to the end of the log and stay there",
        when=_log,
        footer=lambda s: not s.failed,
    ),
    Action(id="top", keys=("g",), label="top", group=Group.LOG, help="first line of the log, however long", when=_log),
    Action(id="bottom", keys=("G",), label="bottom", group=Group.LOG, help="newest line of the log", when=_log),
    Action(
        id="filter",
        keys=("ampersand",),
        label="filter",
        group=Group.LOG,
        help="show only lines that match a regular expression; an empty one shows all again",
        when=_log,
        footer=lambda s: s.face is Face.LOG,
    ),
    Action(
        id="hide_steps",
        keys=("full_stop",),
        label="hide steps",
        group=Group.LOG,
        help="hide or show step lines: they are the plots",
        when=_log,
        footer=lambda s: s.face is Face.LOG,
    ),
    Action(
        id="wrap",
        keys=("w",),
        label="wrap",
        group=Group.LOG,
        help="wrap long lines, or cut them",
        when=_log,
        footer=lambda s: s.face is Face.LOG,
    ),
    Action(
        id="unfold",
        keys=("u",),
        label="unfold",
        group=Group.LOG,
        help="show equal tracebacks of ranks one by one, or as one line",
        when=_log,
    ),
    Action(
        id="mark_lines",
        keys=("v",),
        label="mark",
        group=Group.LOG,
        help="mark where the pane stands: y copies and > saves from there to where it stands then",
        when=_log,
    ),
    Action(
        id="save",
        keys=("greater_than_sign",),
        label="save",
        group=Group.LOG,
        help="save the marked lines, else those on the screen, to a file on this machine",
        when=_log,
    ),
    Action(
        id="choose_log",
        keys=("l",),
        label="logs",
        group=Group.LOG,
        help="look at another log: of a past run, or any that the target's template could have made",
        when=_log,
        footer=lambda s: s.face is Face.LOG,
    ),
    Action(
        id="metric",
        keys=("m",),
        label="metric",
        group=Group.VIEW,
        help="tok/s, loss, queue and memory take turns in the plot (after a failure, in place of why); then a list of "
        "all other numbers",
        when=_plots,
        named=lambda s: "plots" if s.failed else "metric",
        footer=lambda s: s.plotted if s.failed else not s.launching,
    ),
    Action(
        id="zoom",
        keys=("z",),
        label="zoom",
        group=Group.VIEW,
        help="the whole run or its last 10 minutes",
        when=_plots,
        footer=lambda s: not s.failed and not s.launching,
    ),
    Action(
        id="axis",
        keys=("x",),
        label="step/time axis",
        group=Group.VIEW,
        help="draw by the time or by the step",
        when=_plots,
    ),
    Action(
        id="baseline",
        keys=("b",),
        label="baseline",
        group=Group.VIEW,
        help="choose what to compare with: a past run or a number of tokens/s",
        when=_plots,
    ),
    Action(
        id="mark",
        keys=("space",),
        label="mark",
        group=Group.VIEW,
        help="mark two runs, A and B, to compare them; again takes the mark away",
        when=_runs,
        footer=_always,
    ),
    Action(
        id="run_again",
        keys=("o",),
        label="run again with these settings",
        group=Group.RUN,
        changes_run=True,
        help="show the plan of a restart with the settings of the chosen run",
        when=_runs,
        footer=lambda s: s.link_up and s.settings_known,
    ),
    Action(
        id="note",
        keys=("a",),
        label="note",
        group=Group.RUN,
        help="write a note on the chosen run, kept in the ledger on this machine",
        when=_runs,
        footer=_always,
    ),
    Action(
        id="run_metric",
        keys=("m",),
        label="metric",
        group=Group.VIEW,
        help="tok/s, loss and queue take turns in the plot of the two runs",
        when=_comparing,
        footer=_always,
    ),
    Action(
        id="by_step",
        keys=("x",),
        label="step/time axis",
        group=Group.VIEW,
        help="line the two runs up by their steps or by the time since the first step",
        when=_comparing,
        footer=_always,
    ),
    Action(id="run_down", keys=("down", "j"), label="run", group=Group.VIEW, help="the next older run", when=_runs),
    Action(id="run_up", keys=("up", "k"), label="run", group=Group.VIEW, help="the next newer run", when=_runs),
    Action(id="run_first", keys=("home", "g"), label="newest", group=Group.VIEW, help="the newest run", when=_runs),
    Action(id="run_last", keys=("end", "G"), label="oldest", group=Group.VIEW, help="the oldest run", when=_runs),
    Action(
        id="event_up",
        keys=("up", "k"),
        shown="↑↓",
        label="scroll",
        group=Group.VIEW,
        help="earlier events",
        when=_events,
        footer=_always,
    ),
    Action(id="event_down", keys=("down", "j"), label="later", group=Group.VIEW, help="later events", when=_events),
    Action(id="event_page_up", keys=("pageup",), label="page up", group=Group.VIEW, help="a page up", when=_events),
    Action(
        id="event_page_down", keys=("pagedown",), label="page down", group=Group.VIEW, help="a page down", when=_events
    ),
    Action(id="event_first", keys=("home", "g"), label="first", group=Group.VIEW, help="the first event", when=_events),
    Action(id="event_last", keys=("end", "G"), label="last", group=Group.VIEW, help="the newest event", when=_events),
    Action(
        id="gpu_metric",
        keys=("m",),
        label="memory/power/busy",
        group=Group.VIEW,
        help="memory, power and how busy the GPUs are take turns in the plots",
        when=_gpus,
        footer=_always,
    ),
    Action(
        id="gpu_zoom",
        keys=("z",),
        label="zoom",
        group=Group.VIEW,
        help="the whole run or its last 10 minutes",
        when=_gpus,
    ),
    Action(
        id="gpu_down",
        keys=("down", "j"),
        shown="↑↓",
        label="GPU",
        group=Group.VIEW,
        help="choose the next GPU",
        when=_gpus,
        footer=_always,
    ),
    Action(id="gpu_up", keys=("up", "k"), label="GPU", group=Group.VIEW, help="choose the GPU before", when=_gpus),
    Action(
        id="gpu_detail",
        keys=("enter",),
        label="processes",
        group=Group.VIEW,
        help="the processes on the chosen GPU and all that is known of it, in place of the plots",
        when=_gpus,
        footer=_always,
    ),
    Action(
        id="copy",
        keys=("y",),
        label="copy",
        group=Group.VIEW,
        help="copy the selection, else a report of what is shown, to your clipboard",
        footer=_no_contact,
        named=lambda s: "copy report" if s.failed else "copy",
    ),
    Action(
        id="help",
        keys=("question_mark",),
        label="help",
        group=Group.CONSOLE,
        help="all keys",
        last=True,
        footer=_always,
    ),
    Action(
        id="palette", keys=("ctrl+p", "colon"), label="palette", group=Group.CONSOLE, help="find an action by its name"
    ),
    Action(id="repaint", keys=("ctrl+l",), label="repaint", group=Group.CONSOLE, help="paint the whole screen anew"),
    Action(
        id="quit",
        keys=("q", "ctrl+q"),
        label="quit",
        group=Group.CONSOLE,
        help="leave; the run goes on",
        last=True,
        footer=_always,
        named=lambda s: f"quit, {'stop' if s.stopping else 'launch'} goes on" if s.launching else "quit",
    ),
)
