"""The plan of a restart or a stop as rows: what is killed, cleared, started, checked, and how long it takes. Pure."""

from __future__ import annotations

import shlex

from msgspec import Struct
from msgspec.structs import replace

from console.model import CachePlan, Check, CheckState, Overrides, Plan, Process, Snapshot, Verdict
from console.ui.present import words
from console.ui.present.facts import is_stopping, program
from console.ui.present.look import VERDICT_WORDS, Look
from console.ui.present.processes import command_words, process_rows
from console.ui.present.spans import (
    BLANK,
    Line,
    Role,
    Span,
    View,
    as_text,
    cells,
    clip,
    clip_path,
    dim,
    faint,
    strong,
    whole_facts,
    whole_spans,
    wrap,
    wrap_facts,
)

_LABEL = 6
_LEAST_PATH = 8
_BUTTON_CELLS = 7  # a blank on each side of the two labels, and three between the buttons


class PlanView(Struct, frozen=True, kw_only=True):
    """Everything that the dialog shows."""

    title: str
    rows: View
    keep: str
    """Label of the button that changes nothing."""
    act: str | None
    """Label of the button that acts; None where the plan can't be executed."""
    act_key: str
    enter_acts: bool = False
    """Nothing is killed: enter may start it."""
    hints: tuple[tuple[str, str], ...] = ()


def plan_view(
    plan: Plan, snapshot: Snapshot, overrides: Overrides, width: int, look: Look, *, note: str = ""
) -> PlanView:
    """Lay a plan out for a text width of `width` cells. `note` says what changed while the dialog was open."""
    narrow = width < 90
    restart = plan.action == "restart"
    rows: list[Line] = []
    if note:
        rows += _warn_rows(f"changed: {note}", width)
    rows += _lock_rows(plan, snapshot, width)
    rows += _refused_rows(plan, width)
    rows += _kill_rows(plan, snapshot, width, look, narrow)
    if restart:
        rows += [BLANK, *_cache_rows(plan, width, narrow)]
        rows += [BLANK, *_start_rows(plan, overrides, width, narrow)]
        checks = _check_rows(plan, width)
        rows += [BLANK, *checks] if checks else []
        rows += [BLANK, _time_row(plan, overrides, width)]
    elif plan.checks:
        rows += [BLANK, *_check_rows(plan, width)]
    blocked = bool(plan.refused) or plan.under_way is not None or (not restart and not plan.replaces)
    return PlanView(
        title=_title(plan), rows=tuple(rows), keep=_keep_label(plan), act=None if blocked else _act_label(plan),
        act_key="R" if restart else "S", enter_acts=restart and not plan.replaces,
        hints=_hints(restart, overrides, snapshot),
    )  # fmt: skip


def _title(plan: Plan) -> str:
    old = plan.replaced_name or ("a run started by hand" if plan.replaced_by_hand else "")
    if plan.action == "stop":
        return f"stop {plan.target}: {old or 'nothing runs'}"
    return (
        f"restart {plan.target}: {old} → {plan.name}" if plan.replaces and old else f"start {plan.target}: {plan.name}"
    )


def _hints(restart: bool, overrides: Overrides, snapshot: Snapshot) -> tuple[tuple[str, str], ...]:
    if not restart:
        return ()
    keep = ("c", "clear cache" if overrides.keep_cache else "keep cache")
    hints = (("e", "edit env, args, note"), ("n", "name"), keep)
    if overrides.base is not None:
        return (*hints, ("o", "the config's settings"))
    if snapshot.good is not None:
        return (*hints, ("o", f"{words.one_line(snapshot.good.name or snapshot.good.id)}'s settings"))
    return hints


def _keep_label(plan: Plan) -> str:
    if not plan.replaces:
        return "esc back"
    return f"esc keep {plan.replaced_name or 'it'} running"


def _act_label(plan: Plan) -> str:
    if plan.action == "stop":
        return f"S stop {plan.replaced_name or 'it'}"
    return f"R kill it and start {plan.name}" if plan.replaces else f"R start {plan.name}"


def button_labels(view: PlanView, width: int) -> tuple[str, str]:
    """Return the labels of the two buttons, in fewer words where the dialog is narrow; the keys stay."""
    keep, act = view.keep, view.act or ""
    start = act.replace("kill it and ", "")
    for labels in ((keep, act), ("esc keep it", act), ("esc keep it", start), ("esc back", start)):
        if sum(map(cells, labels)) + _BUTTON_CELLS <= width:
            return labels
    return "esc back", f"{view.act_key} do it"


def _label(text: str) -> Span:
    return faint(text.ljust(_LABEL))


def _warn_rows(text: str, width: int, label: str = "") -> list[Line]:
    """A sentence that wraps, with one mark before it."""
    return [
        (_label(label if index == 0 else ""), Span("! " if index == 0 else "  ", Role.WARN, True), Span(part))
        for index, part in enumerate(wrap(text, width - _LABEL - 2))
    ]


def _lock_rows(plan: Plan, snapshot: Snapshot, width: int) -> list[Line]:
    lock = plan.under_way
    if lock is None:
        return []
    origin = f" ({lock.origin})" if lock.origin else ""
    since = f", {words.whole_duration(snapshot.at - lock.since_at)}" if lock.since_at is not None else ""
    stage = f": {lock.stage}" if lock.stage else ""
    text = words.one_line(f"{lock.operator}{origin} is restarting{' ' + lock.name if lock.name else ''}{stage}{since}")
    return [*_warn_rows(text, width, "lock"), BLANK]


def _refused_rows(plan: Plan, width: int) -> list[Line]:
    rows: list[Line] = []
    for check in plan.refused:
        for index, text in enumerate(wrap(_check_text(check), width - _LABEL - 2)):
            rows.append(
                (
                    _label("check" if not rows else ""),
                    Span("✗ " if index == 0 else "  ", Role.ERROR, True),
                    strong(text),
                )
            )
    if rows:
        so = "so nothing is touched; the button is missing until this is mended"
        rows += [(_label(""), dim(text)) for text in wrap(so, width - _LABEL)]
        rows.append(BLANK)
    return rows


def _check_text(check: Check) -> str:
    return words.one_line(check.detail or check.label or check.id)


def _kill_rows(plan: Plan, snapshot: Snapshot, width: int, look: Look, narrow: bool) -> list[Line]:
    if not plan.replaces:
        return [(_label("kill"), dim("nothing runs, nothing is killed"))]
    name = words.one_line(plan.replaced_name or "a run started by hand")
    doing = whole_facts(_doing(snapshot), max(0, width - _LABEL - cells(name) - 2), ", ")
    head: Line = (_label("kill"), strong(name), Span(f"  {doing}"))
    rows: list[Line] = [head if _fits(head, "", width) else (_label("kill"), strong(clip(name, width - _LABEL)))]
    rows += _lost_rows(plan, snapshot, width, narrow)
    rows += process_rows(_aged(plan, snapshot.at), width - _LABEL, memory=not narrow, label=_label(""))
    rows += [(_label(""), faint(text)) for text in wrap_facts(_how(plan, narrow), width - _LABEL, " · ")]
    return rows


def _aged(plan: Plan, now: float) -> list[Process]:
    """Return the processes as old as they are by now: the plan may be read for minutes."""
    since_s = max(0.0, now - plan.made_at)
    return [replace(each, age_s=None if each.age_s is None else each.age_s + since_s) for each in plan.replaces]


def _lost_rows(plan: Plan, snapshot: Snapshot, width: int, narrow: bool) -> list[Line]:
    """What a kill at this moment would lose: it grows while the plan is read."""
    steps, progress = snapshot.steps_at_stake, snapshot.progress
    checkpoint = progress.checkpoint_step
    if steps is None:  # the link is lost, or the log not read yet: what was known when the plan was made
        steps, checkpoint = plan.lost_steps, plan.checkpoint_step
    if not steps:
        return []
    took = f" ({words.span(steps * progress.usual_step_s)})" if progress.usual_step_s is not None and not narrow else ""
    since = f" since checkpoint {words.count(checkpoint)}" if checkpoint is not None else ""
    return _warn_rows(f"{words.plural(steps, 'step')}{took}{since} are lost", width)


def _doing(snapshot: Snapshot) -> list[str]:
    facts = ["being stopped" if is_stopping(snapshot) else VERDICT_WORDS[snapshot.verdict].lower()]
    progress = snapshot.progress
    if progress.rate.now is not None and snapshot.verdict in (Verdict.STEPPING, Verdict.SLOW):
        facts.append(f"{words.rate(progress.rate.now)} tok/s")
    if progress.first_step_at is not None:
        facts.append(words.short_duration(snapshot.at - progress.first_step_at))
    return facts


def _how(plan: Plan, narrow: bool) -> list[str]:
    wait = "wait until they are gone"
    if plan.gpu_bytes:
        wait = f"wait until {words.whole_gib(plan.gpu_bytes)} GiB are free"
    facts = [plan.stop_signal, f"{words.span(plan.grace_s)} grace", "KILL", wait]
    if plan.bystanders and not narrow:
        facts.append(f"{words.plural(len(plan.bystanders), 'bystander')} left alone")
    return facts


def _cache_rows(plan: Plan, width: int, narrow: bool) -> list[Line]:
    if plan.keep_cache:
        return [(_label("cache"), dim("kept (c)"))]
    if not plan.caches:
        return [(_label("cache"), dim("no cache configured"))]
    return [row for index, cache in enumerate(plan.caches) for row in _cache_row(cache, index == 0, width, narrow)]


def _cache_row(cache: CachePlan, first: bool, width: int, narrow: bool) -> list[Line]:
    label = _label("cache" if first else "")
    path = words.one_line(cache.path)
    room = width - _LABEL
    if cache.refused:
        return _warn_rows(f"{path} is left alone: {words.one_line(cache.refused)}", width, label.text.rstrip())
    if not cache.exists:
        return [(label, dim(_path_with(path, (" is not there, nothing to clear", " is not there"), room)))]
    least = "at least " if cache.partial else ""
    sizes = [f"{least}{words.size(cache.bytes)}"] if cache.bytes is not None else []
    if cache.files is not None and not narrow:
        sizes.append(words.plural(cache.files, "file"))
    size = "  " + ", ".join(sizes) if sizes else ""
    tail = "   set aside now, deleted later"
    line: Line = (label, Span(f"clear {clip_path(path, max(_LEAST_PATH, room - 6 - cells(size)))}"), dim(size))
    return [(*line, faint(tail)) if _fits(line, tail, width) else line]


def _path_with(path: str, endings: tuple[str, ...], room: int) -> str:
    """Return a path with the longest ending that leaves it whole, else shortened with the last ending."""
    for ending in endings:
        if cells(path) + cells(ending) <= room:
            return path + ending
    return clip_path(path, max(_LEAST_PATH, room - cells(endings[-1]))) + endings[-1]


def _fits(line: Line, more: str, width: int) -> bool:
    return sum(cells(s.text) for s in line) + cells(more) <= width


def _start_rows(plan: Plan, overrides: Overrides, width: int, narrow: bool) -> list[Line]:
    name, cwd = words.one_line(plan.name), words.one_line(plan.cwd)
    room = width - _LABEL - cells(name) - 2
    whole = command_words(plan.argv, 10_000)
    rows: list[Line]
    if cells(whole) + 5 + cells(cwd) <= room:
        rows = [(_label("start"), strong(name), dim(f"  {whole}  in {cwd}"))]
    else:
        rows = [(_label("start"), strong(name), dim(f"  {command_words(plan.argv, max(8, room))}")),
                (_label(""), faint("in  "), dim(clip_path(cwd, width - _LABEL - 4)))]  # fmt: skip
    log = (_label(""), faint("log "), dim(clip_path(words.one_line(plan.log_path), width - _LABEL - 4)))
    rows.append((*log, faint("  new file")) if not narrow and _fits(log, "  new file", width) else log)
    rows += _from_rows(plan, width)
    for name, (then, now) in sorted(plan.env_changed.items()):
        rows += _change_rows("env", words.one_line(name), f"{_value(then)} → {_value(now)}", width)
    if plan.argv_before is not None:
        then, now = (words.one_line(" ".join(argv)) for argv in (plan.argv_before, plan.argv))
        rows += _change_rows("argv", "", f"{then} → {now}", width)
    if plan.cwd_before is not None:
        rows += _change_rows("cwd", "", f"{words.one_line(plan.cwd_before)} → {words.one_line(plan.cwd)}", width)
    for text in plan.files_changed:
        rows += _change_rows("file", "", words.one_line(text), width)
    if overrides.args and plan.argv_before is None:
        rows += _change_rows("args", "", words.one_line(shlex.join(overrides.args)), width)
    if overrides.note:
        rows += [(_label(""), faint(f"{'note' if index == 0 else ''}".ljust(8)), Span(text))
                 for index, text in enumerate(wrap(words.one_line(overrides.note), width - _LABEL - 8))]  # fmt: skip
    return [*rows, *_same_row(plan, width)]


def _from_rows(plan: Plan, width: int) -> list[Line]:
    """Whose settings these are, and where they are not the config's."""
    if plan.from_run is None:
        return []
    texts = ("settings of ", words.one_line(plan.from_run), "  its command, directory and environment")
    rows: list[Line] = [(_label(""), Span("o ", Role.BUSY, True), dim(texts[0]), strong(texts[1]), dim(texts[2]))]
    if sum(cells(span.text) for span in rows[0]) > width:
        rows = [rows[0][:-1]]
    for name, (config, past) in plan.from_env.items():
        rows += _change_rows("env", words.one_line(name), f"{_value(past)} (config {_value(config)})", width)
    return rows


def _same_row(plan: Plan, width: int) -> list[Line]:
    """What is as in the run compared with, and which run that is."""
    if not plan.since:
        return []
    facts = [kind for kind, then in (("argv", plan.argv_before), ("cwd", plan.cwd_before)) if then is None]
    if plan.env_same:
        facts.append(words.plural(plan.env_same, "env name"))
    good = ", which reached stepping" if plan.since_stepped else ""
    line = whole_spans(
        [(_label(""), faint(f"= same  {', '.join(facts) or 'nothing'}")),
         (faint(f"  as in {words.one_line(plan.since)}"),), (faint(good),)], width,
    )  # fmt: skip
    return [line] if line else []


def _value(value: str | None) -> str:
    return "unset" if value is None else words.one_line(value) or '""'


def _change_rows(kind: str, name: str, change: str, width: int) -> list[Line]:
    head = (_label(""), Span("~ ", Role.WARN, True), dim(f"{kind:<4}  "))
    line: Line = (*head, Span(f"{name} ") if name else Span(""), strong(change) if name else Span(change))
    if _fits(line, "", width):
        return [line]
    beside = (_label(""), Span("        "))
    rows: list[Line] = [(*head, Span(name))] if name else []
    for text in wrap(change, width - _LABEL - 8):
        rows.append((*(beside if rows else head), strong(text)))
    return rows


def _check_rows(plan: Plan, width: int) -> list[Line]:
    good = [check for check in plan.checks if check.state is not CheckState.REFUSE]
    passed = [check for check in good if check.state is CheckState.OK]
    rows: list[Line] = []
    if passed or plan.refused:
        total = len(plan.checks)
        lead = f"{len(passed)} of {total}" if plan.refused else f"{len(good)} of {total}"
        names = [words.one_line(check.label or check.id) for check in passed]
        mark = Span("✓ ", Role.OK) if not plan.refused else Span("· ", Role.FAINT)
        head: Line = (_label("check"), mark, Span(lead, Role.OK if not plan.refused else Role.DIM))
        margin, beside = _LABEL + 2, cells(lead) + 2
        beside, below = (beside, beside) if width >= 90 else (beside, 0)
        # Where rows are short, those below begin at the margin.
        texts = wrap_facts(names, width - margin - below, ", ", first_less=beside - below)
        for index, text in enumerate(texts):
            start = (*head, Span("  ")) if index == 0 else (Span(" " * (margin + below)),)
            rows.append((*start, dim(text)))
        if not names:
            rows.append(head)
    for check in plan.checks:
        if check.state is CheckState.WARN:
            rows += _warn_rows(_check_text(check), width, "" if rows else "check")
    return rows


def _time_row(plan: Plan, overrides: Overrides, width: int) -> Line:
    if plan.usual_launch_s is None:
        return (_label("time"), dim("not known yet: no launch of this kind was seen"))
    kept = overrides.keep_cache or plan.keep_cache
    kind = f" {'with the cache kept' if kept else 'with a cleared cache'}" if plan.caches else ""
    facts = f"  ({words.launches(plan.usual_launches)}{kind}"
    other = ""
    if plan.usual_other_s is not None:
        other = f"; {words.short_duration(plan.usual_other_s)} with it {'cleared' if kept else 'kept'}"
    about = strong(f"about {words.short_duration(plan.usual_launch_s)}")
    head: Line = (_label("time"), about, dim(" to the first step"))
    for text in (f"{facts}{other})", f"{facts})"):
        if _fits(head, text, width):
            return (*head, faint(text))
    return head if _fits(head, "", width) else (_label("time"), about)


def what_changed(old: Plan, new: Plan) -> str:
    """Say in words what made a plan another one; empty where nothing that matters did."""
    facts = []
    before, after = {p.pid: p for p in old.replaces}, {p.pid: p for p in new.replaces}
    gone = [pid for pid in before if pid not in after]
    come = [pid for pid in after if pid not in before]
    if gone:
        facts.append(f"pid {', '.join(map(str, gone))} {'is' if len(gone) == 1 else 'are'} gone")
    if come:
        names = ", ".join(f"{pid} ({program(after[pid].argv)})" for pid in come)
        facts.append(f"pid {names} {'is' if len(come) == 1 else 'are'} new")
    if old.files_changed != new.files_changed:
        facts.append("a script was edited")
    if old.under_way is None and new.under_way is not None:
        facts.append(f"{new.under_way.operator} holds the lock")
    if old.under_way is not None and new.under_way is None:
        facts.append("the lock is free")
    for check in new.refused:
        if check.id not in {c.id for c in old.refused}:
            facts.append(_check_text(check))
    return " · ".join(facts)


def plan_text(plan: Plan, view: PlanView) -> str:
    """The plan for the clipboard."""
    return f"plan {plan.plan_id}: {view.title}\n{as_text(view.rows)}\n"
