"""The runs screen: what the table says, marks A and B, notes, and starting a run with the settings of an old one."""

from __future__ import annotations

import asyncio
from datetime import UTC

import pytest
from msgspec.structs import replace

from console.history.comparing import Comparison, Pair, compare, gap_curve
from console.history.comparing import curve as points_of
from console.history.entry import Runs
from console.history.samples import Curves
from console.reasons import ConsoleError, Reason
from console.state.digest import Digester
from console.state.steadiness import window
from console.ui import plot
from console.ui.app import ConsoleApp
from console.ui.present.look import Look
from console.ui.present.runcompare import compare_view
from console.ui.present.runplot import Beside, Curve, label_x, run_plot, ticks_x
from console.ui.present.runs import RunsPainter
from console.ui.present.runtable import RunList, run_table, started
from console.ui.present.spans import Role, View, as_text, text_of, width_of
from console.ui.screens.plan import PlanScreen
from console.ui.screens.prompt import PromptScreen
from console.ui.screens.runs import RunsScreen
from tests.ui import fixtures, pastruns
from tests.ui.fixtures import NOW
from tests.ui.screens import is_there
from tests.ui.test_keys import running
from tests.waiting import until_async

LOOK = Look(zone=UTC)
LISTED = RunList(
    rows=pastruns.ROWS, live="r-0041", verdict="stepping", me="ops1", target="ct200", read=True, a="r-0041", b="r-0040"
)


def table(width: int = 120, rows: int = 20, runs: RunList = LISTED) -> View:
    return run_table(runs, width, rows, NOW, LOOK)


def row_of(name: str, width: int = 120) -> str:
    return next(text_of(line) for line in table(width)[2:] if f" {name} " in text_of(line))


def role_of(view: View, text: str) -> Role:
    return next(span.role for line in view for span in line if text in span.text)


def beside(**changes: object) -> Beside:
    kept = pastruns.FakeArchive().kept
    a, b = kept["r-0041"], kept["r-0040"]
    return replace(Beside(found=compare((pastruns.LIVE, a), (pastruns.BEFORE, b)), a=a, b=b), **changes)


# -- the table --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80, 120])
def test_table_says_whose_log_was_not_read_yet(width: int) -> None:
    listed = replace(LISTED, unread=frozenset({"r-0040"}))

    view = table(width, runs=listed)

    assert "not read yet: the" in text_of(view[0])
    assert role_of(view, "not read yet") is Role.WARN
    assert all(width_of(line) <= width for line in view)
    assert "not read yet" not in as_text(table(width))


def test_run_whose_log_was_not_read_yet_may_have_done_more() -> None:
    place = next(index for index, row in enumerate(LISTED.rows) if row.id == "r-0040")
    chosen = replace(LISTED, cursor=place, unread=frozenset({"r-0040"}))

    shown = as_text(RunsPainter(LOOK).paint(fixtures.HEALTHY, chosen, None, 120, 40).body)

    assert "not read yet: the run may have done more than is told" in shown


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("slammed5", ["● stepping", "18,420", "21,480", "190", "137.9", "1.192", "3m 41s", "today 12:16"]),
        ("slammed4", ["■ stopped by anna"]),
        ("slammed3", ["✗ NaN loss, step 9,311", "NaN", "args batch 8->6"]),
        ("–", ["✗ spawned: exit 126", "yesterday"]),
        ("slammed1", ["■ stopped by you"]),
        ("old", ["? log only", "until 18 Aug"]),
    ],
)
def test_a_row_says_how_a_run_ended_and_what_it_achieved(run: str, words: list[str]) -> None:
    row = row_of(run)

    assert [word for word in words if word not in row] == []


@pytest.mark.parametrize(
    ("fields", "steps"),
    [
        ({"is_judged": True}, "0"),
        ({"failed_stage": "spawned", "outcome": "failed"}, "0"),
        ({"log_size": 4096}, "0"),
        ({}, "?"),
        ({"log_size": 0}, "?"),
        ({"is_judged": True, "log_size": 4096, "reason": "format_unknown"}, "?"),
        ({"is_judged": True, "is_over": False, "outcome": "running"}, "?"),
    ],
)
def test_no_step_is_claimed_only_where_somebody_looked(fields: dict[str, object], steps: str) -> None:
    row = pastruns.entry(50, 60.0, stepped=False, **fields)

    line = text_of(run_table(RunList(rows=(row,), target="ct200", read=True), 160, 10, NOW, LOOK)[2])

    assert line.split()[-5] == steps


def test_what_a_run_has_and_nobody_knows_is_a_question_and_what_it_has_not_is_a_dash() -> None:
    """Launch, tok/s, spread, peak, loss of: one that stepped unseen, one that failed before, one of two steps."""
    same = pastruns.settings("1")
    unseen = pastruns.entry(50, 60.0, loss_state=None, settings=same)
    failed = pastruns.entry(
        51, 60.0, stepped=False, outcome="failed", failed_stage="spawned", loss_state=None, settings=same
    )
    young = pastruns.entry(52, 60.0, first_step=0, last_step=2, launch_s=3.0, last_loss=2.5, settings=same)
    rows = (unseen, failed, young, pastruns.LIVE)

    lines = [text_of(line) for line in run_table(RunList(rows=rows, target="x", read=True), 160, 10, NOW, LOOK)[2:]]

    assert [line.split()[-5:] for line in lines[:3]] == [
        ["?", "?", "?", "?", "?"],
        ["0", "–", "–", "–", "–"],
        ["2", "–", "–", "?", "2.500"],
    ]


def test_rate_of_one_gpu_says_so_in_the_table() -> None:
    row = pastruns.entry(50, 60.0, steady_tok_s=2684.0, steady_mad=6.0, scope="per_device")

    assert "2,684/GPU" in text_of(table(runs=replace(LISTED, rows=(row, pastruns.LIVE)))[2])
    assert "21,480 " in text_of(table(runs=replace(LISTED, rows=(row, pastruns.LIVE)))[3])


def test_list_that_ends_before_the_oldest_run_says_so() -> None:
    assert "6, newest first" not in text_of(table(runs=replace(LISTED, has_older=True))[0])
    assert "the 7 newest, older ones: history -n" in text_of(table(runs=replace(LISTED, has_older=True))[0])


def test_changes_are_told_from_the_run_before_that_reached_stepping() -> None:
    assert "env DFLASH_SPLIT_FC_LAYERS 0->1; train_dflash_pipeline.py" in row_of("slammed5", 200)
    assert "“batch 8 again” · args batch 6->8" in row_of("slammed4", 200)


@pytest.mark.parametrize("width", [160, 120, 100, 80, 72, 60, 48])
def test_no_row_is_wider_than_the_screen_and_end_and_rate_stay(width: int) -> None:
    view = table(width)

    assert max(width_of(line) for line in view) <= width
    assert "✗ NaN loss, step 9,311" in as_text(view)
    if width >= 60:
        assert "21,480" in as_text(view)


def test_only_failures_are_red() -> None:
    view = table(200)

    assert role_of(view, "NaN loss") is Role.ERROR
    assert role_of(view, "spawned: exit 126") is Role.ERROR
    assert role_of(view, "stopped by anna") is Role.DIM


@pytest.mark.parametrize("cursor", range(7))
def test_the_chosen_run_is_always_among_the_rows(cursor: int) -> None:
    view = table(rows=5, runs=replace(LISTED, cursor=cursor))

    assert len(view) == 5
    assert sum("▌" in text_of(line) for line in view) == 1


def test_an_empty_ledger_says_so_and_one_that_can_not_be_read_says_why() -> None:
    assert "no run is known yet" in as_text(table(runs=RunList(target="ct200", read=True)))
    assert "reading the ledger" in as_text(table(runs=RunList(target="ct200")))
    assert "disk I/O error" in as_text(table(runs=RunList(target="ct200", complaint="disk I/O error")))


def test_the_time_of_a_run_is_told_by_the_day() -> None:
    assert started(pastruns.entry(1, 60), NOW, UTC) == "today 14:33"
    assert started(pastruns.entry(1, 20 * 3600), NOW, UTC) == "yesterday 18:34"
    assert started(pastruns.entry(1, 9 * 86400), NOW, UTC) == "11 Aug 14:34"


# -- side by side -----------------------------------------------------------------------------------------------------


def figure(view: View, label: str) -> str:
    return next(text_of(line) for line in view if text_of(line).strip().startswith(label))


def test_figures_of_two_runs_stand_side_by_side_with_their_difference() -> None:
    view = compare_view(beside(), 120, 24, LOOK)

    assert "±181" in figure(view, "tok/s, steady 10 min")
    assert "+3 s" in figure(view, "launch")
    assert "137.9 GiB" in figure(view, "peak memory, GPU 6")
    assert "+6.7" in figure(view, "peak memory, GPU 6")
    assert "−3.1 pt" in figure(view, "queue empty")
    assert "96 % / 606" in figure(view, "targets busy / W")
    assert "DFLASH_SPLIT_FC_LAYERS  1 | 0" in as_text(view)
    assert "it is a difference" in as_text(view)


def test_more_memory_is_amber_and_a_better_rate_green_only_beyond_the_noise() -> None:
    sure = beside()
    assert sure.found.rate is not None
    doubtful = replace(sure, found=replace(sure.found, rate=replace(sure.found.rate, significant=False, noise_pct=9.0)))

    assert figure_role(sure, "tok/s") is Role.OK
    assert figure_role(doubtful, "tok/s") is Role.DIM
    assert figure_role(sure, "peak memory") is Role.WARN
    assert "may be noise alone" in as_text(compare_view(doubtful, 120, 24, LOOK))


def figure_role(shown: Beside, label: str) -> Role:
    line = next(
        line
        for line in compare_view(shown, 120, 24, LOOK)
        if text_of(line).strip().startswith(label) and len(line) == 4
    )
    return line[-1].role


def test_what_is_not_known_is_asked_for_and_never_zero() -> None:
    a, b = pastruns.LIVE, pastruns.ROWS[-1]
    kept = pastruns.FakeArchive().kept["r-0041"]
    found = compare((a, kept), (b, Curves()))

    view = compare_view(Beside(found=found, a=kept, b=Curves()), 120, 30, LOOK)

    assert "? / ?" in figure(view, "targets busy / W")
    assert "of a log alone no settings are kept" in as_text(view)
    assert "the curve of one of them is not kept" in as_text(view)
    assert "no steady rates of" in as_text(view)


@pytest.mark.parametrize("width", [160, 120, 80, 60])
@pytest.mark.parametrize("rows", [4, 10, 16, 24, 40])
def test_a_comparison_never_takes_more_room_than_it_is_given(width: int, rows: int) -> None:
    plot.load()
    for curve in Curve:
        for by_step in (False, True):
            view = compare_view(beside(curve=curve, by_step=by_step), width, rows, LOOK)

            assert len(view) <= rows
            assert max(width_of(line) for line in view) <= width


def test_few_rows_show_the_gap_and_many_both_curves() -> None:
    assert "tok/s gap  A over B, %, since the first step, 5 min median" in as_text(
        compare_view(beside(), 120, 24, LOOK)
    )
    assert "tok/s  A B  since the first step" in as_text(compare_view(beside(), 120, 40, LOOK))
    assert "by step" in as_text(compare_view(beside(by_step=True), 120, 40, LOOK))


def test_places_of_the_axis_are_round() -> None:
    assert [label_x(x, by_step=False) for x in ticks_x(8000, 113, by_step=False)] == ["0", "30m", "1h", "1h 30m", "2h"]
    assert [label_x(x, by_step=True) for x in ticks_x(18_420, 113, by_step=True)] == ["0", "5,000", "10,000", "15,000"]
    assert ticks_x(1e12, 10, by_step=False) == ()


def test_two_runs_are_drawn_once_as_long_as_nothing_new_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    painter = RunsPainter(LOOK)

    def counted(shown: Beside, width: int, rows: int, look: Look) -> View:
        drawn.append(shown.version)
        return compare_view(shown, width, rows, look)

    monkeypatch.setattr("console.ui.present.runs.compare_view", counted)
    snapshot = fixtures.HEALTHY

    for version, width in ((1, 120), (1, 120), (2, 120), (2, 100)):
        painter.paint(snapshot, LISTED, beside(version=version), width, 35)

    assert len(drawn) == 3


# -- comparing --------------------------------------------------------------------------------------------------------


def test_tokens_after_equal_time_are_the_rate_over_time() -> None:
    flat = pastruns.curves(1, 20_000, 0.0, 1.0)
    found = compare((pastruns.LIVE, flat), (pastruns.BEFORE, flat))

    warm = sum(2 * 20_000 * (1 - 0.25 * 2.718281828 ** (-(step * 2) / 600)) for step in range(1800))
    assert found.equal_s == 3600.0
    assert found.tokens is not None
    assert found.tokens.a == pytest.approx(warm, rel=0.01)


@pytest.mark.parametrize(("width", "rows"), [(60, 17), (80, 20), (160, 44)])
def test_rates_that_count_different_tokens_are_shown_without_difference_or_curve(width: int, rows: int) -> None:
    kept = pastruns.FakeArchive().kept
    a, b = kept["r-0041"], kept["r-0040"]
    found = compare((replace(pastruns.LIVE, scope="per_device"), a), (pastruns.BEFORE, b))

    shown = as_text(compare_view(Beside(found=found, a=a, b=b), width, rows, LOOK))

    rate = next(line for line in shown.splitlines() if line.strip().startswith("tok/s"))
    assert "%" not in rate
    assert "the rates can't be compared" in shown
    assert "over B" not in shown
    assert ("A counts the tokens of one GPU, B of all GPUs" in shown) == (width > 60)


def test_tokens_of_a_run_that_was_not_watched_all_the_time_are_not_made_up() -> None:
    whole = pastruns.curves(1, 20_000, 0.0, 1.0)
    digest = whole.digests["tok_s"]
    half = replace(whole, digests={"tok_s": replace(digest, buckets=digest.buckets[:40] + digest.buckets[200:])})

    found = compare((pastruns.LIVE, half), (pastruns.BEFORE, whole))

    assert found.tokens is not None
    assert found.tokens.a is None
    assert found.tokens.b is not None


def test_loss_is_compared_at_the_last_round_step_that_both_have_made() -> None:
    found: Comparison = beside().found

    assert found.equal_step == 3900
    assert found.loss is not None
    assert found.loss.a == pytest.approx(1.1 + 9 * 2.718281828 ** (-3880 / 3000), abs=0.02)


def losses_of(steps: range, value: float, width_s: float = 1.0) -> Curves:
    """One step a second, the loss the same all the time."""
    digester = Digester()
    for number, step in enumerate(steps):
        digester.add(number * width_s, value, step)
    return Curves(digests={"loss": digester.digest})


def test_runs_that_share_no_step_are_not_compared_at_one() -> None:
    """One went on at a checkpoint that the other never reached."""
    resumed, young = losses_of(range(20_000, 20_400), 1.2), losses_of(range(400), 3.5)

    found = compare((pastruns.LIVE, resumed), (pastruns.BEFORE, young))

    assert (found.equal_step, found.loss) == (None, None)
    assert "loss at step" not in as_text(compare_view(Beside(found=found, a=resumed, b=young), 120, 30, LOOK))


def test_loss_of_a_curve_that_begins_behind_the_step_is_not_known() -> None:
    """It made the step, and nobody noted its loss before step 300."""
    late = losses_of(range(400), 1.2)
    late = replace(late, digests={"loss": replace(late.digests["loss"], buckets=late.digests["loss"].buckets[300:])})

    found = compare((replace(pastruns.LIVE, first_step=0), late), (pastruns.BEFORE, losses_of(range(200), 3.5)))

    assert found.equal_step == 190
    assert found.loss == Pair(None, 3.5)


def test_loss_between_two_places_of_a_log_lies_between_theirs() -> None:
    """1.0 at step 100 and 2.0 at step 300: 1.5 at step 200."""
    sparse = Digester()
    for step, value in ((0, 1.0), (100, 1.0), (300, 2.0)):
        sparse.add(float(step), value, step)
    kept = Curves(digests={"loss": sparse.digest})

    found = compare((pastruns.LIVE, kept), (pastruns.BEFORE, losses_of(range(201), 3.5)))

    assert found.equal_step == 200
    assert found.loss == Pair(1.5, 3.5)


def read_in_places(rate: float, hole: tuple[float, float] = (0.0, 0.0)) -> Curves:
    """Ten hours of a log of which 100 s stand at each of 25 places, but for a hole in which nothing was written."""
    digester = Digester()
    for place in range(25):
        for second in range(0, 100, 2):
            at = place * 1500.0 + second
            if not hole[0] <= at < hole[1]:
                digester.add(at, rate, int(at / 2))
    return Curves(digests={"tok_s": digester.digest})


def test_tokens_of_a_log_that_was_read_in_places_are_an_estimate_and_say_so() -> None:
    """21,000 tokens/s for 10 hours are 756 M, and 20,000 are 720 M."""
    log = pastruns.ROWS[-1]
    a, b = read_in_places(21_000.0), read_in_places(20_000.0)

    found = compare((log, a), (log, b))

    assert found.equal_s == 36_000.0
    assert found.tokens is not None
    assert found.tokens.a == pytest.approx(756e6)
    assert found.tokens.b == pytest.approx(720e6)
    assert "~756.0 M" in figure(compare_view(Beside(found=found, a=a, b=b), 120, 30, LOOK), "tokens at 10h 00m")


def test_hours_in_which_a_log_was_silent_hold_no_tokens() -> None:
    found = compare(
        (pastruns.ROWS[-1], read_in_places(21_000.0, hole=(9_000.0, 18_000.0))),
        (pastruns.ROWS[-1], read_in_places(20_000.0)),
    )

    assert found.tokens is not None
    assert found.tokens.a is None
    assert found.tokens.b == pytest.approx(720e6)


def test_gap_between_logs_that_were_read_in_places_has_no_holes() -> None:
    """A's places lie between B's: 21,000 over 20,000 is 5 % everywhere."""
    a = [(at + 700.0, rate) for at, rate in points_of(read_in_places(21_000.0).digests["tok_s"], by_step=False)]
    b = points_of(read_in_places(20_000.0).digests["tok_s"], by_step=False)

    gap = gap_curve(a, b, 300.0, sampled=True)

    assert len(gap) > 0.9 * len(a)
    assert {round(value, 6) for _, value in gap} == {5.0}


def test_gap_of_losses_below_zero_goes_up_where_the_loss_does() -> None:
    """-3 is more than -4, by a fourth of it."""
    points = [(float(x), -4.0) for x in range(20)]

    gap = gap_curve([(x, -3.0) for x, _ in points], points, 1.0)

    assert {value for _, value in gap} == {25.0}


@pytest.mark.parametrize(
    ("low", "high"), [(900.0, 1300.0), (1e-6, 3e-6), (-130_000.0, -120_000.0), (2e12, 9e12), (0.0, 5.0), (-1e7, 1e13)]
)
@pytest.mark.parametrize("shown", [Curve.LOSS, Curve.QUEUE, Curve.TOK_S])
def test_labels_of_two_curves_say_what_they_stand_for_and_never_push_them_aside(
    low: float, high: float, shown: Curve
) -> None:
    plot.load()
    digester = Digester()
    for second in range(400):
        digester.add(float(second), low + (high - low) * second / 400, second)
    kept = Curves(digests={shown: digester.digest})
    both = Beside(found=compare((pastruns.LIVE, kept), (pastruns.BEFORE, kept)), a=kept, b=kept, curve=shown)

    rows = as_text(run_plot(both, 120, 22, LOOK)).splitlines()[1:20]

    assert {row.find("┤") if "┤" in row else row.find("│") for row in rows if "┤" in row or "│" in row} == {6}
    labels = [number_of(row[:6]) for row in rows if "┤" in row]
    assert labels == sorted(labels, reverse=True)
    assert all(low - (high - low) <= label <= high + (high - low) for label in labels)


def number_of(label: str) -> float:
    text = label.strip()
    factors = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    return float(text[:-1]) * factors[text[-1]] if text[-1] in factors else float(text)


def test_spread_beside_a_rate_is_that_of_its_steps_though_means_of_them_are_kept() -> None:
    """20,000 and 22,000 in turns, two steps a second: the spread is 1,000, and that of means of two is 0."""
    rates = [(at / 2, 20_000.0 + 2_000 * (at % 2)) for at in range(1200)]
    kept = Curves(steady=window(rates))
    run = replace(pastruns.LIVE, steady_tok_s=21_000.0, steady_mad=1_000.0, steady_n=1200)

    found = compare((run, kept), (run, kept))

    assert len(kept.steady.rates) == 600
    assert found.rate is not None
    assert (found.rate.a.median, found.rate.a.mad, found.rate.a.n) == (21_000.0, 1_000.0, 1200)
    assert found.rate.delta == 0


def test_few_tokens_are_not_rounded_to_none() -> None:
    """100 s at 300 tokens/s are 30,000."""
    digester = Digester()
    for second in range(100):
        digester.add(float(second), 300.0, second)
    kept = Curves(digests={"tok_s": digester.digest})

    found = compare((pastruns.LIVE, kept), (pastruns.BEFORE, kept))

    assert "30,000" in figure(compare_view(Beside(found=found, a=kept, b=kept), 120, 30, LOOK), "tokens at 1m 40s")


def test_a_pair_with_a_hole_has_no_difference() -> None:
    assert (Pair(1.0, None).delta, Pair(None, 1.0).delta_pct, Pair(1.0, 0.0).delta_pct) == (None, None, None)


def text(app: ConsoleApp) -> str:
    return app.screen.text() if isinstance(app.screen, RunsScreen) else ""


# -- keys -------------------------------------------------------------------------------------------------------------


async def test_space_marks_two_runs_and_shows_them_side_by_side() -> None:
    async with running(pastruns.source()) as (app, _, pilot):
        await pilot.press("4")
        await until_async(lambda: "slammed4" in text(app), what="the table")

        await pilot.press("space", "down", "space")

        await until_async(lambda: "A against B" in text(app), what="the comparison")
        assert "A slammed5  B slammed4" in text(app)

        await pilot.press("m", "x")
        await until_async(lambda: "loss gap  A over B, %, by step" in text(app), what="the loss by step")

        await pilot.press("space")
        await until_async(lambda: "A against B" not in text(app), what="one mark fewer")
        await pilot.press("1")
        assert not isinstance(app.screen, RunsScreen)


async def test_a_note_is_written_and_shown() -> None:
    async with running(pastruns.source()) as (app, source, pilot):
        await pilot.press("4")
        await until_async(lambda: "slammed4" in text(app), what="the table")

        await pilot.press("a")
        await until_async(lambda: is_there(app, PromptScreen), what="the line to type in")
        await pilot.press(*"split", "enter")

        await until_async(lambda: "“split”" in text(app), what="the note")
        assert isinstance(source.archive, pastruns.FakeArchive)
        assert source.archive.rows[0].annotation == "split"


async def test_o_opens_the_plan_with_the_settings_of_the_chosen_run() -> None:
    async with running(pastruns.source()) as (app, source, pilot):
        await pilot.press("4")
        await until_async(lambda: "slammed4" in text(app), what="the table")

        await pilot.press("down", "o")

        await until_async(lambda: is_there(app, PlanScreen) and source.asked, what="the plan")
        base = source.asked[0][1].base
        assert base is not None
        assert (base.id, base.name, base.settings) == ("r-0040", "slammed4", pastruns.BEFORE.settings)


async def test_settings_of_a_log_alone_can_not_be_taken_again() -> None:
    async with running(pastruns.source()) as (app, source, pilot):
        await pilot.press("4")
        await until_async(lambda: "log only" in text(app), what="the table")

        await pilot.press("G", "o")
        await pilot.pause()

        assert not isinstance(app.screen, PlanScreen)
        assert source.asked == []


async def test_read_only_takes_starting_away_but_not_notes() -> None:
    async with running(pastruns.source(), read_only=True) as (app, source, pilot):
        await pilot.press("4")
        await until_async(lambda: "slammed4" in text(app), what="the table")

        await pilot.press("o")
        await pilot.pause()
        assert source.asked == []

        await pilot.press("a")
        await until_async(lambda: is_there(app, PromptScreen), what="the line to type in")


async def test_a_ledger_that_can_not_be_used_is_told_where_the_runs_would_stand() -> None:
    found = pastruns.source()
    assert isinstance(found.archive, pastruns.FakeArchive)
    found.archive.refuse = ConsoleError(Reason.LEDGER_UNUSABLE, "ledger.sqlite3: disk I/O error")

    async with running(found) as (app, _, pilot):
        await pilot.press("4")

        await until_async(lambda: "disk I/O error" in text(app), what="the complaint")


async def test_a_list_that_takes_long_is_not_begun_anew_before_it_is_there() -> None:
    """A dozen logs of earlier runs take longer than the list stays fresh."""
    source = pastruns.source()
    archive = source.archive = SlowArchive()
    async with running(source) as (app, _, pilot):
        await pilot.press("4")
        await until_async(lambda: "logs of earlier runs are being looked for" in text(app), what="the empty table")
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        await until_async(lambda: archive.asked == 2, what="the second look")

        for _ in range(20):
            screen.look_again()
            await pilot.pause()

        assert archive.asked == 2
        archive.goes_on.set()
        await until_async(lambda: "slammed4" in text(app), what="the table")


async def test_runs_are_listed_though_nothing_can_be_noted_and_it_is_said_why() -> None:
    found = pastruns.source()
    assert isinstance(found.archive, pastruns.FakeArchive)
    found.archive.unwritten = "/home/ops/ledger.sqlite3: No space left on device"

    async with running(found) as (app, _, pilot):
        await pilot.press("4")
        await until_async(lambda: "nothing new is noted: " in text(app), what="why")

        said = text(app)

    assert "nothing new is noted: No space left on device (/home/ops/ledger.sqlite3)" in said
    assert "slammed4" in said


class SlowArchive(pastruns.FakeArchive):
    """Has not looked at logs at the first question, and takes long over the next."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.goes_on = 0, asyncio.Event()

    async def runs(self, limit: int = 100, since: int = 0) -> Runs:
        self.asked += 1
        if self.asked == 1:
            return Runs(logs_read=False)
        await self.goes_on.wait()
        return await super().runs(limit, since)
