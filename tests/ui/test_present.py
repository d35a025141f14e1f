"""What the presentation says: whole facts, numbers never cut, every state at every size."""

from __future__ import annotations

import re
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.model import LogState, LogStatus, Overrides, Process, Queue, Snapshot, StageState, Verdict
from console.reasons import Reason
from console.state import reasonview
from console.ui.bigtext import big, can_draw
from console.ui.present import words
from console.ui.present.band import draw_band
from console.ui.present.charts import chart_panel
from console.ui.present.contact import contact_page
from console.ui.present.facts import gpus_in_use, pace
from console.ui.present.frame import age_span, footer, header, title
from console.ui.present.gpus import gpu_line, gpu_panel
from console.ui.present.launch import launch_panel, why_panel
from console.ui.present.layout import Middle, lay_out, middle_of
from console.ui.present.logtitle import LogShown, empty_log, log_title
from console.ui.present.look import ASCII, VERDICT_WORDS, Look, to_ascii
from console.ui.present.plan import button_labels, plan_view, what_changed
from console.ui.present.plotting import Metric
from console.ui.present.processes import folded, process_rows
from console.ui.present.rail import draw_rail
from console.ui.present.report import pane_title, report
from console.ui.present.spans import (
    Role,
    Span,
    as_text,
    cells,
    clip_path,
    keep_end,
    text_of,
    whole_facts,
    width_of,
    wrap,
    wrap_facts,
)
from console.ui.present.verdict import verdict_facts
from tests.ui import fixtures
from tests.ui.fixtures import replace

LOOK = Look(zone=UTC)
SNAPSHOTS = {name: scene().snapshot for name, scene in fixtures.SCENES.items()}
WIDTHS = (40, 60, 72, 80, 100, 110, 120, 150, 160, 220)


def test_facts_are_dropped_whole_from_the_end() -> None:
    facts = ["step 18,420", "2h 14m since the first step", "loss 1.192"]

    assert whole_facts(facts, 60) == "step 18,420 · 2h 14m since the first step · loss 1.192"
    assert whole_facts(facts, 50) == "step 18,420 · 2h 14m since the first step"
    assert whole_facts(facts, 20) == "step 18,420"


@given(st.text(alphabet="ab /.:,0123456789é漢", max_size=200), st.integers(2, 80))
def test_wrapping_loses_nothing_but_blanks(text: str, width: int) -> None:
    rows = wrap(text, width)

    assert all(cells(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")


def test_a_phase_that_does_not_fit_keeps_its_numbers() -> None:
    assert keep_end("Loading checkpoint shards 5/12 42 %", 18) == "shards 5/12 42 %"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_no_row_of_any_state_is_wider_than_the_screen(name: str, width: int) -> None:
    snapshot = SNAPSHOTS[name]
    narrow = width < 110
    views = [
        draw_band(verdict_facts(snapshot, LOOK), width, big_letters=width >= 110),
        draw_rail(snapshot, width, LOOK, rows=3) if width >= 110 else (),
        (header(snapshot, width, LOOK), gpu_line(snapshot, width, LOOK)),
        launch_panel(snapshot, width, 9, LOOK, narrow=narrow),
        why_panel(snapshot, width, LOOK, narrow=narrow),
        gpu_panel(snapshot, max(36, width // 2), 12, LOOK, narrow=narrow, wide=width >= 150),
        (log_title(snapshot, width, LOOK, LogShown(), narrow=narrow),),
    ]
    limits = [width] * 5 + [max(36, width // 2), width]

    for view, limit in zip(views, limits, strict=True):
        assert [text_of(line) for line in view if width_of(line) > limit] == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["failed", "ended", "interrupted", "refused"])
def test_the_cause_of_a_failure_is_never_cut(name: str, width: int) -> None:
    snapshot = SNAPSHOTS[name]
    facts = verdict_facts(snapshot, LOOK)

    shown = as_text(draw_band(facts, width, big_letters=width >= 110))

    cause = facts.cause or facts.first[0]
    assert _squeezed(cause) in _squeezed(_right_of(shown, "safe", "next"))


def _right_of(text: str, *labels: str) -> str:
    """Take the big letters and the labels away; what remains is running text."""
    plain = re.sub(r"[█▀▄]", " ", text)
    return re.sub(rf"^\s*({'|'.join(labels)})\b", "", plain, flags=re.M)


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_no_number_of_the_verdict_ends_in_an_ellipsis(name: str, width: int) -> None:
    band = as_text(draw_band(verdict_facts(SNAPSHOTS[name], LOOK), width, big_letters=width >= 110))

    assert "…" not in band


@pytest.mark.parametrize("width", WIDTHS)
def test_first_contact_tells_whole_facts_at_every_width(width: int) -> None:
    page = contact_page(SNAPSHOTS["by-hand"], width, LOOK, may_act=True)

    text = " ".join(as_text(page).split())
    assert all(width_of(line) <= width for line in page)
    assert "its exit status can not be known: no keeper started it" in text
    assert "may die at logout" in text
    assert "Nothing was touched." in text


def test_a_stop_under_way_is_no_launch() -> None:
    snapshot = SNAPSHOTS["stopping"]

    facts = verdict_facts(snapshot, LOOK)
    band = as_text(draw_band(facts, 120, big_letters=False))

    assert (facts.word, facts.number, facts.fill) == ("STOPPING", "6s", "busy")
    assert "TERM, 14 s of 20 s left" in band
    assert "stage 1 of 5" not in band
    assert "first step" not in facts.caption
    assert middle_of(snapshot) is Middle.SPEED


@pytest.mark.parametrize(("width", "shown"), [(160, "TERM, 14 s of 20 s left"), (110, "14 s of 20 s left")])
def test_the_countdown_of_a_stop_is_what_stays_of_its_evidence(width: int, shown: str) -> None:
    rail = as_text(draw_rail(SNAPSHOTS["stopping"], width, LOOK, rows=3)).splitlines()

    assert rail[2].strip().startswith(shown)


def test_a_skipped_stage_took_no_time() -> None:
    stages = (replace(fixtures.DONE[0], state=StageState.SKIPPED, took_s=0.0), *fixtures.DONE[1:])
    rail = as_text(draw_rail(replace(SNAPSHOTS["healthy"], stages=stages), 80, LOOK, rows=1))

    assert "– kill ─ ✓ cache" in rail


def test_the_queue_is_told_as_the_range_of_its_last_minutes() -> None:
    facts = verdict_facts(SNAPSHOTS["healthy"], LOOK)

    assert facts.second[0] == "queue 6–16 of 16"


@pytest.mark.parametrize(
    ("since_s", "said"),
    [
        (21.9, "never empty, full 27 % for 21 s"),
        (599.0, "never empty, full 27 % for 9m 59s"),
        (7200.0, "never empty, full 27 % for 10 min"),
        (None, "never empty, full 27 % for 10 min"),
    ],
)
def test_shares_of_the_queue_are_of_no_more_time_than_there_was(since_s: float | None, said: str) -> None:
    healthy = SNAPSHOTS["healthy"]
    first_at = healthy.at - since_s if since_s is not None else None
    queue = Queue(min_ready=7, max_depth=16, empty_pct=0.0, full_pct=27.0)
    progress = replace(healthy.progress, queue=queue, first_step_at=first_at)

    assert said in pace(replace(healthy, progress=progress))


def test_shares_of_the_queue_of_a_run_that_ended_grow_no_longer_with_the_time_since() -> None:
    ended = next(each for each in SNAPSHOTS.values() if each.run is not None and each.run.exit is not None)
    assert ended.run is not None
    assert ended.run.exit is not None
    assert ended.run.exit.at is not None
    queue = Queue(min_ready=7, max_depth=16, empty_pct=0.0, full_pct=27.0)
    progress = replace(ended.progress, queue=queue, first_step_at=ended.run.exit.at - 36.4)

    assert "never empty, full 27 % for 36 s" in pace(replace(ended, progress=progress))


def test_where_the_loss_stops_being_a_number_the_axis_says_so() -> None:
    source = fixtures.SCENES["nan"]()
    panel = chart_panel(Metric.LOSS, source.snapshot, source.series, 80, 12, LOOK)
    marked = [line for line in panel[1:] if any(span.text == "✗" and span.role is Role.ERROR for span in line)]
    healthy = chart_panel(Metric.LOSS, SNAPSHOTS["healthy"], source.series, 80, 12, LOOK)

    assert [text_of(line).lstrip()[0] for line in marked] == ["└"]
    assert all(width_of(line) <= 80 for line in panel)
    assert "✗" not in as_text(healthy)


@pytest.mark.parametrize(("width", "has_reason"), [(120, True), (60, False)])
def test_plot_says_that_the_baseline_counts_other_tokens_shortly_where_it_is_narrow(
    width: int, has_reason: bool
) -> None:
    why = "slammed4 counts the tokens of one rank, this run of all GPUs"
    progress = fixtures.HEALTHY.progress
    apart = replace(progress, rate=replace(progress.rate, baseline=None, delta_pct=None, unlike=why))

    head = text_of(chart_panel(Metric.TOK_S, replace(fixtures.HEALTHY, progress=apart), {}, width, 9, LOOK)[0])

    assert "not compared" in head
    assert (why in head) is has_reason


def test_ranks_of_one_run_are_one_row_with_their_memory() -> None:
    shell = Process(pid=84933, start_ticks=1, argv=("bash", "/root/run.sh"), age_s=60.0)
    ranks = [
        Process(pid=84941 + n, start_ticks=2, parent=84933, age_s=59.0, gpu_bytes=70 * 2**30,
                argv=("python", "-u", "/opt/train.py", "--rank", str(n)))
        for n in range(8)
    ]  # fmt: skip
    loaders = [
        Process(pid=85000 + n, start_ticks=3, parent=84941 + n % 8, argv=("python", "loader"), age_s=58.0)
        for n in range(32)
    ]

    rows = [text_of(row).strip() for row in process_rows([shell, *ranks, *loaders], 90, memory=True, label=Span(""))]

    assert rows == [
        "84933  1m 00s  bash /root/run.sh",
        "84941  59 s    └ python -u /opt/train.py --rank 0  ×8 ranks   560 GiB",
        "85000  58 s      └ python loader  ×32",
    ]


def test_processes_that_differ_in_more_than_numbers_stay_apart_and_a_loop_hides_none() -> None:
    a = Process(pid=1, start_ticks=1, parent=2, argv=("python", "a.py"))
    b = Process(pid=2, start_ticks=1, parent=1, argv=("python", "b.py"))

    assert {p.pid for branch in folded([a, b]) for p in branch.processes} == {1, 2}
    assert len(folded([a, b])) == 2


@pytest.mark.parametrize("width", range(1, 60))
def test_a_path_is_cut_in_its_middle_and_keeps_its_name_while_that_fits(width: int) -> None:
    path = "/tmp/dflash-demo-x/host/cache/torchinductor"

    shown = clip_path(path, width)

    assert cells(shown) <= width
    if width >= len("…/torchinductor"):
        assert shown.endswith("/torchinductor")
    if width >= len(path):
        assert shown == path


def test_rows_of_facts_end_between_two_facts() -> None:
    rows = wrap_facts(["run.sh", "its interpreter", "cwd", "log dir"], 20)

    assert rows == ["run.sh,", "its interpreter,", "cwd, log dir"]


@pytest.mark.parametrize("width", [39, 54, 74, 100])
def test_the_buttons_of_a_plan_always_fit_with_their_keys(width: int) -> None:
    view = plan_view(fixtures.RESTART_PLAN, SNAPSHOTS["healthy"], Overrides(), width, LOOK)

    keep, act = button_labels(view, width)

    assert cells(keep) + cells(act) + 7 <= width
    assert keep.startswith("esc ")
    assert act.startswith("R ")


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_a_word_and_can_be_drawn_big(verdict: Verdict) -> None:
    snapshot = replace(SNAPSHOTS["healthy"], verdict=verdict)

    facts = verdict_facts(snapshot, LOOK)

    assert facts.word
    assert facts.glyph
    assert can_draw(facts.word)
    assert can_draw(facts.number)
    assert len({len(row) for row in big(facts.word)}) == 1
    assert verdict in VERDICT_WORDS


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_bare_snapshot_of_any_verdict_can_be_shown(verdict: Verdict) -> None:
    bare = replace(fixtures.CONNECTING, verdict=verdict)

    facts = verdict_facts(bare, LOOK)

    for width in (60, 120):
        assert draw_band(facts, width, big_letters=width > 110)
    assert report(bare, [], LOOK)
    assert pane_title(bare, LOOK)


def test_the_big_number_is_an_age_while_the_link_is_lost() -> None:
    facts = verdict_facts(SNAPSHOTS["link"], LOOK)

    assert (facts.number, facts.caption) == ("42s", "since the last word")
    assert facts.first == ("jump host ops@jump does not answer", "attempt 4 in 8 s")
    assert facts.second[0] == "last known: STEPPING"


def test_a_host_never_heard_of_shows_no_age_and_no_last_value() -> None:
    facts = verdict_facts(SNAPSHOTS["refused"], LOOK)

    assert facts.word == "NO LINK"
    assert facts.number == facts.caption == ""
    assert facts.second == ("nothing was heard of this host yet",)


def test_a_launch_without_history_counts_up_and_promises_nothing() -> None:
    stages = tuple(replace(stage, usual_s=None) for stage in fixtures.LAUNCH)
    facts = verdict_facts(replace(fixtures.LAUNCHING, stages=stages), LOOK)

    assert facts.number == "1m17s"
    assert facts.caption == "since it was accepted"
    assert "usually" not in " ".join(facts.first)


def test_gpus_of_unknown_owner_are_not_counted_as_free() -> None:
    gpus = replace(fixtures.GPUS_FREE, gpus=(replace(fixtures.GPUS_FREE.gpus[0], owner="unknown"),))
    facts = verdict_facts(replace(fixtures.LAUNCH_FAILED, gpus=gpus), LOOK)

    assert facts.number == "?/1"


def test_a_value_that_is_not_known_is_a_question_mark_and_not_zero() -> None:
    gpu = replace(fixtures.GPUS.gpus[0], used_bytes=None, util_pct=None, power_w=None, temperature_c=None)
    panel = gpu_panel(
        replace(fixtures.HEALTHY, gpus=replace(fixtures.GPUS, gpus=(gpu,))), 57, 12, LOOK, narrow=False, wide=False
    )

    row = text_of(panel[2])

    assert row.count("?") == 5
    assert "0 %" not in row


def test_columns_of_the_gpu_table_stand_below_each_other() -> None:
    for narrow, wide, width in ((False, False, 57), (False, True, 65), (True, False, 38)):
        panel = gpu_panel(fixtures.HEALTHY, width, 12, LOOK, narrow=narrow, wide=wide)
        rows = [text_of(line) for line in panel if " %" in text_of(line)][:8]

        assert len({row.index(" %") for row in rows}) == 1
        assert len({len(row) for row in rows}) == 1


@pytest.mark.parametrize(
    ("age", "text", "role"), [(0.5, "live", "faint"), (5.0, "5 s old", "dim"), (7.0, "7 s old", "warn")]
)
def test_ages_turn_amber_from_three_periods_on(age: float, text: str, role: str) -> None:
    span = age_span(age, 2.0)

    assert (span.text, span.role) == (text, role)


@pytest.mark.parametrize(
    ("mad", "of", "shown"),
    [(190.0, 21_480.0, "±0.2"), (27.0, 12_900.0, "±0.03"), (3.0, 112.0, "±3"), (80.0, 900.0, "±80"),
     (5_000.0, 1_210_000.0, "±0.01"), (90_000.0, 1_210_000.0, "±0.1"), (None, 1.0, ""), (1.0, None, "")],
)  # fmt: skip
def test_a_spread_has_the_unit_of_its_rate(mad: float | None, of: float | None, shown: str) -> None:
    assert words.spread_of(mad, of) == shown


def test_a_title_drops_facts_but_never_its_age() -> None:
    facts = [(Span("now 21.5K"),), (Span("steady 21.4K ±0.2"),)]

    line = title("tok/s", facts, Span("42 s old"), 42, LOOK)

    assert "now 21.5K" in text_of(line)
    assert "steady" not in text_of(line)
    assert "42 s old" in text_of(line)


def test_help_and_quit_never_leave_the_footer() -> None:
    keys = [("r", "restart"), ("s", "stop"), ("/", "search")]

    for width in range(24, 120):
        line = text_of(footer(keys, [("?", "help"), ("q", "quit, launch goes on")], width))
        assert "? help" in line
        assert "q quit" in line
        assert cells(line) <= width


def test_the_host_clock_is_mentioned_only_beyond_two_seconds() -> None:
    near = text_of(header(fixtures.HEALTHY, 160, LOOK))
    far = text_of(header(replace(fixtures.HEALTHY, link=replace(fixtures.LINK, clock_offset_s=-7.25)), 160, LOOK))

    assert "clock" not in near
    assert "host clock −7.2 s" in far


@pytest.mark.parametrize(
    ("log", "text"),
    [
        (LogStatus(state=LogState.MISSING, path="/w/a.log", detail="the directory exists"),
         "log not there yet: /w/a.log (the directory exists)"),
        (LogStatus(state=LogState.EMPTY, path="/w/a.log"), "0 B for 1m 04s · GPUs work: buffered?"),
        (LogStatus(state=LogState.NONE), "no log is known for this run"),
    ],
)  # fmt: skip
def test_an_empty_log_says_what_it_is_empty_of(log: LogStatus, text: str) -> None:
    assert empty_log(replace(fixtures.LAUNCHING, log=log)) == text


def test_in_ascii_every_width_stays() -> None:
    look = Look(glyphs=ASCII, zone=UTC)
    for snapshot in SNAPSHOTS.values():
        for line in (*draw_rail(snapshot, 120, look, rows=1), header(snapshot, 120, look)):
            plain = to_ascii(text_of(line))
            assert plain.isascii()
            assert len(plain) == cells(text_of(line))


@pytest.mark.parametrize("height", range(10, 60))
@pytest.mark.parametrize("name", ["healthy", "launching", "failed", "link", "stalled", "ended"])
def test_the_log_keeps_four_rows_at_any_height(name: str, height: int) -> None:
    snapshot = SNAPSHOTS[name]
    for width in WIDTHS:
        big_letters = width >= 110 and height >= 30
        band = draw_band(
            verdict_facts(snapshot, LOOK), width, big_letters=big_letters, airy=width >= 150 and height >= 44
        )
        layout = lay_out(snapshot, width, height, band_rows=len(band), why_rows=6, big=big_letters)
        used = layout.header + len(band) + layout.rail_rows + 2 * layout.airy + layout.middle_rows + 1
        if height >= 20:
            assert height - used >= 5, (width, layout)


def test_the_middle_answers_the_question_of_the_moment() -> None:
    found = {name: lay_out(s, 120, 36, band_rows=4, why_rows=6, big=True).middle for name, s in SNAPSHOTS.items()}

    assert found["launching"] is Middle.LAUNCH
    assert found["failed"] is found["ended"] is Middle.WHY
    assert found["healthy"] is found["stalled"] is found["link"] is Middle.SPEED


def test_a_refused_plan_has_no_button_and_its_check_stands_first() -> None:
    view = plan_view(fixtures.REFUSED_PLAN, fixtures.HEALTHY, Overrides(), 106, LOOK)

    assert view.act is None
    assert "may not be executed" in text_of(view.rows[0])


def test_steps_that_a_kill_would_lose_are_those_of_now_not_of_when_the_plan_was_made() -> None:
    progress = replace(fixtures.HEALTHY.progress, step=18_905, checkpoint_step=18_000)
    later = replace(fixtures.HEALTHY, progress=progress)

    view = plan_view(fixtures.RESTART_PLAN, later, Overrides(), 106, LOOK)

    assert any("905 steps" in text_of(row) and "since checkpoint 18,000" in text_of(row) for row in view.rows)


def test_processes_of_an_open_plan_grow_older() -> None:
    aged = replace(fixtures.RESTART_PLAN, replaces=(replace(fixtures.PROCESSES[0], age_s=100.0),))
    later = replace(fixtures.HEALTHY, at=fixtures.HEALTHY.at + 3600.0)

    view = plan_view(aged, later, Overrides(), 106, LOOK)

    assert any("84933  1h 01m" in text_of(row) for row in view.rows)


def test_enter_may_start_only_where_nothing_is_killed() -> None:
    kills = plan_view(fixtures.RESTART_PLAN, fixtures.HEALTHY, Overrides(), 106, LOOK)
    starts = plan_view(fixtures.START_PLAN, fixtures.IDLE, Overrides(), 106, LOOK)

    assert (kills.enter_acts, starts.enter_acts) == (False, True)
    assert starts.act == "R start slammed6"


@pytest.mark.parametrize("width", [50, 70, 74, 106])
def test_rows_of_a_plan_stay_within_the_dialog(width: int) -> None:
    for plan in (fixtures.RESTART_PLAN, fixtures.STOP_PLAN, fixtures.REFUSED_PLAN, fixtures.LOCKED_PLAN):
        view = plan_view(plan, fixtures.HEALTHY, Overrides(), width, LOOK)
        assert [text_of(r) for r in view.rows if width_of(r) > width] == []


def test_what_changed_under_an_open_plan_is_said_in_words() -> None:
    gone = replace(fixtures.RESTART_PLAN, replaces=fixtures.PROCESSES[:1])

    assert what_changed(fixtures.RESTART_PLAN, gone) == "pid 84941 is gone"
    assert what_changed(gone, fixtures.RESTART_PLAN).startswith("pid 84941 (train_dflash_pipeline.py) is new")
    assert what_changed(gone, gone) == ""


def test_the_report_holds_verdict_cause_stages_and_log() -> None:
    text = report(fixtures.LAUNCH_FAILED, ["+ cd /root", "boom"], LOOK)

    assert text.startswith("ct200 slammed6: FAILED")
    for part in ("Permission denied", "safe: slammed5 was stopped", "✗ spawned 0.2 s", "  boom"):
        assert part in text


def test_the_pane_title_names_the_failed_stage() -> None:
    assert pane_title(fixtures.LAUNCH_FAILED, LOOK) == "✗ ct200 slammed6 FAILED spawned"


def test_control_characters_of_foreign_names_never_reach_a_row() -> None:
    evil = "a\x1b]0;x\x07\u202eb\x9b31m"
    run = replace(fixtures.RUN, name=evil)
    snapshot: Snapshot = replace(fixtures.HEALTHY, run=run)

    text = as_text(draw_band(verdict_facts(snapshot, LOOK), 120, big_letters=True)) + pane_title(snapshot, LOOK)

    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert words.one_line("a\nb") == "a b"


def test_a_list_of_gpus_in_the_rail_is_whole_or_absent() -> None:
    waiting = replace(fixtures.LAUNCH[3], have=3, missing=(0, 2, 4, 6, 7), evidence="3/8, not yet: 0, 2, 4, 6, 7")
    stages = (*fixtures.LAUNCH[:3], waiting, fixtures.LAUNCH[4])

    at_120 = as_text(draw_rail(replace(fixtures.LAUNCHING, stages=stages), 120, LOOK, rows=3))
    at_220 = as_text(draw_rail(replace(fixtures.LAUNCHING, stages=stages), 220, LOOK, rows=3))

    assert "3/8" in at_120
    assert "not yet" not in at_120
    assert "…" not in at_120
    assert "3/8, not yet: 0, 2, 4, 6, 7" in at_220


def on_instances(*missing: str, state: StageState = StageState.ACTIVE) -> Snapshot:
    cuda = replace(fixtures.LAUNCH[3], state=state, have=1, want=3, missing=(), missing_parts=missing)
    launch = (*fixtures.LAUNCH[:3], cuda, fixtures.LAUNCH[4])
    snapshot: Snapshot = replace(fixtures.LAUNCHING, stages=launch, reason=None)
    return snapshot


def test_instances_of_a_gpu_without_a_context_are_named_in_the_rail_as_far_as_all_fit() -> None:
    one, two = on_instances("0:2"), on_instances("0:2", "1:0")

    assert "1/3, not yet: 0:2 " in as_text(draw_rail(one, 120, LOOK, rows=3))
    assert "1/3, not yet: 0:2, 1:0" in as_text(draw_rail(two, 160, LOOK, rows=3))
    narrow = as_text(draw_rail(two, 100, LOOK, rows=3))
    assert "1/3" in narrow
    assert "not yet" not in narrow


def test_instances_of_a_gpu_without_a_context_stand_in_the_verdict_and_below_the_gpus() -> None:
    waiting = on_instances("0:2", "1:0")
    late = on_instances("0:2", state=StageState.LATE)
    below = gpu_panel(waiting, 80, 14, LOOK, narrow=False, wide=False)

    assert "no context yet: GPU 0 part 2, GPU 1 part 0" in verdict_facts(waiting, LOOK).second
    assert "GPU 0 part 2 without a context" in verdict_facts(late, LOOK).second
    assert "GPU 0 part 2, GPU 1 part 0: no context yet" in as_text(below)


@pytest.mark.parametrize(
    ("source", "why", "number", "title_word"),
    [
        ("none", "no driver", "", "none"),
        ("nvml", "nvmlDeviceGetTemperature has not answered for 7 s", "?", "no answer"),
    ],
)
def test_gpus_that_nobody_can_tell_of_are_neither_counted_nor_called_live(
    source: str, why: str, number: str, title_word: str
) -> None:
    unseen = replace(fixtures.HEALTHY.gpus, source=source, why=why, gpus=(), contexts=(), notes=())
    snapshot: Snapshot = replace(SNAPSHOTS["idle"], gpus=unseen)

    facts = verdict_facts(snapshot, LOOK)
    panel = as_text(gpu_panel(snapshot, 60, 8, LOOK, narrow=False, wide=False))

    assert (facts.number, bool(facts.caption), bool(facts.short_caption)) == (number, bool(number), bool(number))
    assert title_word in panel
    assert why in panel
    assert "live" not in panel


def test_gpus_in_use_are_not_told_by_a_sample_from_before_the_end() -> None:
    failed = SNAPSHOTS["failed"]
    assert failed.run is not None
    assert failed.run.exit is not None
    ended_at = failed.run.exit.at
    assert ended_at is not None

    def number(sampled_at: float) -> str:
        snapshot = replace(failed, gpus=replace(failed.gpus, at=sampled_at))
        return gpus_in_use(snapshot)

    assert number(ended_at - 0.5) == "?/8"
    assert number(ended_at + 0.5) == "0/8"


def test_a_number_that_has_no_room_does_not_push_the_others_aside() -> None:
    gpus = fixtures.HEALTHY.gpus
    absurd = replace(gpus, gpus=(replace(gpus.gpus[0], power_w=4294967.0), *gpus.gpus[1:]))

    views = [
        gpu_panel(replace(fixtures.HEALTHY, gpus=each), 60, 12, LOOK, narrow=False, wide=False)
        for each in (gpus, absurd)
    ]

    widths = [[sum(cells(span.text) for span in line) for line in view] for view in views]
    assert widths[0][:9] == widths[1][:9]
    assert "4294967" not in "".join(span.text for line in views[1] for span in line)


def test_a_frozen_container_is_no_lost_link() -> None:
    frozen = replace(
        fixtures.LINK_LOST,
        verdict=Verdict.FROZEN,
        link=replace(fixtures.LINK_LOST.link, reason="container_frozen", retry_at=None, detail="its cgroup is frozen"),
        reason=reasonview.view(Reason.CONTAINER_FROZEN),
    )

    facts = verdict_facts(frozen, LOOK)

    assert can_draw(facts.word)
    assert (facts.word, facts.first) == ("FROZEN", ("its cgroup is frozen", "goes on by itself once it is thawed"))
    assert facts.safe.startswith("the run is suspended, not lost")


def test_a_launch_goes_no_further_on_the_screen_than_the_host_was_heard_of() -> None:
    launching = SNAPSHOTS["launching"]
    heard_at = launching.at
    stages = tuple(
        replace(each, state=StageState.UNKNOWN) if each.state is StageState.ACTIVE else each
        for each in launching.stages
    )
    link = replace(fixtures.LINK_LOST.link, last_word_at=heard_at)
    then = replace(launching, verdict=Verdict.LINK_LOST, stages=stages, link=link)
    later = replace(then, at=heard_at + 600.0)

    for width, narrow in ((106, False), (40, True)):
        shown = [
            [text_of(line) for line in launch_panel(snapshot, width, 9, LOOK, narrow=narrow)][1:]
            for snapshot in (then, later)
        ]
        assert shown[0] == shown[1]
    assert text_of(draw_rail(then, 80, LOOK, rows=1)[0]) == text_of(draw_rail(later, 80, LOOK, rows=1)[0])


def test_what_stands_in_place_of_a_curve_wraps() -> None:
    fresh = replace(fixtures.HEALTHY, progress=replace(fixtures.HEALTHY.progress, step=None))

    view = chart_panel(Metric.TOK_S, fresh, {}, 30, 9, LOOK, narrow=True)

    assert " ".join(" ".join(text_of(line) for line in view[1:]).split()) == "the curve begins with the first step line"


def test_a_stage_whose_end_nobody_saw_has_no_time_that_goes_on() -> None:
    began_at = fixtures.NOW - 3600.0
    stages = (
        *(replace(each, state=StageState.UNKNOWN, took_s=None, began_at=began_at) for each in fixtures.DONE[:4]),
        replace(fixtures.DONE[4], took_s=None, began_at=began_at, ended_at=None),
    )
    by_hand = replace(fixtures.HEALTHY, stages=stages)

    row = text_of(draw_rail(by_hand, 100, LOOK, rows=1)[0])
    rows = [text_of(line) for line in draw_rail(by_hand, 120, LOOK, rows=3)]

    assert "1h" not in " ".join([row, *rows])
    assert "? CUDA ─ ✓ steps" in row
