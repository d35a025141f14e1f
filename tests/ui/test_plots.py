"""What the plots show, and the keys that choose it: number, axis, baseline."""

from __future__ import annotations

import pytest

from console.model import Snapshot
from console.state.series import Series
from console.ui.app import ConsoleApp
from console.ui.present import words
from console.ui.present.charts import chart_panel
from console.ui.present.curves import axis_number
from console.ui.present.look import Look
from console.ui.present.plotting import Against, Axis, Metric, Zoom, named_metrics
from console.ui.present.spans import Role, as_text
from console.ui.screens.overview import NO_BASELINE, Overview
from console.ui.screens.pick import PickScreen
from console.ui.widgets.lines import LinesView
from tests.ui import fixtures, pastruns
from tests.ui.fixtures import NOW, FakeSource, replace
from tests.ui.test_keys import overview, running
from tests.waiting import until_async

LOOK = Look()


def series(*points: tuple[float, int, float]) -> Series:
    made = Series()
    for at, step, value in points:
        made.add(at, value, step)
    return made


def panel(metric: str, found: dict[str, Series], snapshot: Snapshot | None = None, **wanted: object) -> str:
    chosen = snapshot if snapshot is not None else fixtures.HEALTHY
    return as_text(chart_panel(metric, chosen, found, 90, 12, LOOK, **wanted))  # type: ignore[arg-type]


def floor_of(text: str) -> str:
    return next(line for line in text.splitlines() if "└" in line)


# --- what is drawn ---


def test_series_of_the_fixtures_are_ones_own() -> None:
    mine, length = fixtures.run_series(), len(fixtures.run_series()["loss"])

    mine["loss"].add(fixtures.NOW + 1, 1.0, 99_999)
    mine["loss"].checkpoint(99_999)

    another = fixtures.run_series()["loss"]
    assert (len(another), len(mine["loss"]), another.saves) == (length, length + 1, [])


def test_checkpoints_and_restarts_are_marked_along_the_axis() -> None:
    loss = series(*((NOW - 600 + step, step, 2.5) for step in range(100)))
    loss.checkpoint(99)
    loss.add(NOW - 200, 2.5, 40)

    floor = floor_of(panel(Metric.LOSS, {"loss": loss}))

    assert floor.count("◆") == 1
    assert floor.count("↻") == 1
    assert floor.index("◆") < floor.index("↻")


def test_queue_whose_curve_is_kept_is_not_called_none() -> None:
    """Of a run of before its figures of the last minutes are not kept, and its curve is."""
    before = replace(fixtures.HEALTHY, progress=replace(fixtures.HEALTHY.progress, queue=None))
    queue = series(*((NOW - 600 + step, step, 7.0) for step in range(100)))

    assert panel(Metric.QUEUE, {"queue": queue}, before).splitlines()[0].split("queue  ")[1].startswith("min_ready ─")
    assert panel(Metric.QUEUE, {}, before).splitlines()[0].split("queue  ")[1].startswith("none ─")


def test_axis_by_step_is_labelled_with_steps() -> None:
    loss = series(*((NOW - 600 + step, 1000 + step * 10, 2.5) for step in range(100)))

    shown = panel(Metric.LOSS, {"loss": loss}, axis=Axis.STEP)

    assert shown.splitlines()[-1].split()[0] == "1,000"
    assert "by step" in shown.splitlines()[0]


def test_run_whose_log_bears_no_times_is_drawn_by_step_and_says_so() -> None:
    loss = series(*((NOW, step, 2.5) for step in range(100)))
    loss.untimed = True

    whole, short = panel(Metric.LOSS, {"loss": loss}), panel(Metric.LOSS, {"loss": loss}, zoom=Zoom.SHORT)

    assert "by step: no usable times in the log" in whole.splitlines()[0]
    assert "by step" not in short.splitlines()[0]


def test_counter_that_begins_anew_is_drawn_over_the_first_curve() -> None:
    loss = series(*((NOW - 900 + n, step, 2.5) for n, step in enumerate([*range(0, 400, 2), *range(100, 300, 2)])))
    steps = [point.step for point in loss.points]

    assert steps.index(100) != len(steps) - 1 - steps[::-1].index(100)
    assert "by step" in panel(Metric.LOSS, {"loss": loss}, axis=Axis.STEP)


def test_loss_is_compared_with_the_other_run_at_the_same_step() -> None:
    progress = replace(fixtures.HEALTHY.progress, step=150, loss=1.25)
    snapshot = replace(fixtures.HEALTHY, progress=progress)
    # Halfway between 1.40 at 100 and 1.30 at 200 it was 1.35: this run is 0.100 below.
    against = Against(name="slammed4", losses=((100, 1.40), (200, 1.30)))

    shown = panel(Metric.LOSS, fixtures.run_series(), snapshot, against=against)

    assert "1.250" in shown.splitlines()[0]
    assert "−0.100 vs slammed4" in shown.splitlines()[0]


@pytest.mark.parametrize(("step", "loss"), [(99, None), (100, 1.5), (150, 1.25), (200, 1.0), (201, None)])
def test_loss_of_the_other_run_is_known_only_where_it_was_seen(step: int, loss: float | None) -> None:
    assert Against(name="a", losses=((100, 1.5), (200, 1.0))).loss_at(step) == loss


def test_any_number_of_the_step_lines_can_be_drawn() -> None:
    found = {**fixtures.run_series(), "accuracy": series((NOW - 60, 1, 0.25), (NOW - 30, 2, 0.5))}

    shown = panel("accuracy", found)

    assert shown.splitlines()[0].split()[1:4] == ["accuracy", "now", "0.5"]
    assert named_metrics(found) == ["accuracy"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.05, "0.05"), (1.5, "1.5"), (123456.0, "123K"), (1500.0, "1.5K"), (2e-5, "2e-5"),
     (1.25e-5, "1e-5"), (2.5e6, "2.5M"), (0.1234, "0.12"), (-3.25, "-3.2"),
     (-123456.0, "-123K"), (4e8, "400M"), (3.2e12, "3.2T"), (-2e-5, "-2e-5"), (-100.0, "-100")],
)  # fmt: skip
def test_labels_of_an_axis_fit_beside_it(value: float, text: str) -> None:
    assert axis_number(value) == text


@pytest.mark.parametrize("middle", [3.2e12, 0.0031, 21_400.0, 4e30])
def test_a_curve_of_any_size_stands_beside_its_axis(middle: float) -> None:
    points = ((NOW - 600 + step, step, middle * (1 + step % 7 / 100)) for step in range(100))
    rate = replace(fixtures.HEALTHY.progress.rate, now=middle, steady=middle, mad=middle / 100, baseline=None)
    snapshot = replace(fixtures.HEALTHY, progress=replace(fixtures.HEALTHY.progress, rate=rate))

    rows = panel(Metric.TOK_S, {"tok_s": series(*points)}, snapshot).splitlines()

    assert {max(row.find("│"), row.find("┤"), row.find("└")) for row in rows[1:-1]} == {6}
    assert "now 0 " not in rows[0]


@pytest.mark.parametrize(("metric", "word"), [(Metric.TOK_S, "rate"), (Metric.LOSS, "loss")])
def test_number_that_no_step_line_names_is_not_waited_for(metric: Metric, word: str) -> None:
    progress = fixtures.HEALTHY.progress
    without = replace(progress, loss=None, rate=replace(progress.rate, now=None, last=None, steady=None, mad=None))

    shown = panel(metric, {}, replace(fixtures.HEALTHY, progress=without))

    assert f"the step lines of this run name no {word}" in shown
    assert "no step yet" not in shown


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.192, "1.192"), (0.0, "0.000"), (4.5e-7, "4.50e-07"), (-4.944, "-4.944"), (4.5e8, "4.50e+08"), (None, "?")],
)
def test_loss_that_is_not_zero_is_never_written_as_zero(value: float | None, text: str) -> None:
    assert words.loss(value) == text


# --- the keys ---


def title_of(app: ConsoleApp) -> str:
    return as_text(overview(app).query_one("#main-panel", LinesView).view).splitlines()[0]


def with_numbers() -> FakeSource:
    found = fixtures.SCENES["healthy"]()
    found.series = {
        **found.series,
        "accuracy": series((NOW - 60, 1, 0.25), (NOW - 30, 2, 0.5)),
        "gradient norm": series((NOW - 60, 1, 1.5), (NOW - 30, 2, 1.25)),
    }
    return found


async def test_list_of_all_numbers_stands_behind_the_main_plots() -> None:
    async with running(with_numbers()) as (app, _, pilot):
        for _ in Metric:
            await pilot.press("m")
        assert isinstance(app.screen, PickScreen)

        await pilot.press("g", "r", "a", "enter")
        assert "gradient norm" in title_of(app)

        await pilot.press("m")
        assert "tok/s" in title_of(app)


async def test_list_is_moved_in_by_arrows_and_left_by_escape() -> None:
    async with running(with_numbers()) as (app, _, pilot):
        for _ in Metric:
            await pilot.press("m")
        await pilot.press("down", "enter")
        assert "gradient norm" in title_of(app)

        for _ in Metric:
            await pilot.press("m")
        await pilot.press("m", "escape")
        assert isinstance(app.screen, Overview)


@pytest.mark.parametrize("shown", ["grad_norm", "gradient norm"])
async def test_number_that_the_config_names_stands_where_the_queue_is(shown: str) -> None:
    source = with_numbers()
    source.target = replace(source.target, metrics=replace(source.target.metrics, show=shown))
    async with running(source, size=(160, 48)) as (app, _, pilot):
        lower = as_text(overview(app).query_one("#lower-b", LinesView).view).splitlines()[0]
        assert lower.split()[1:5] == ["gradient", "norm", "now", "1.25"]
        assert "queue" in named_metrics(source.series, "gradient norm")
        await pilot.resize_terminal(120, 36)
        await until_async(lambda: not overview(app).query_one("#lower").display, what="the smaller screen")
        turns = []
        for _ in Metric:
            turns.append(title_of(app).split()[1])
            await pilot.press("m")
        assert turns == ["tok/s", "loss", "gradient", "memory"]


def test_number_that_no_step_line_names_is_told_as_missing() -> None:
    assert "names no perplexity" in panel("perplexity", fixtures.run_series())


async def test_x_turns_the_axis() -> None:
    async with running("healthy", size=(160, 48)) as (app, _, pilot):
        await pilot.press("x")
        assert "by step" in title_of(app)

        await pilot.press("x")
        assert "by step" not in title_of(app)


async def test_baseline_is_a_number() -> None:
    async with running("healthy", size=(160, 48)) as (app, source, pilot):
        await pilot.press("b")
        await pilot.pause()
        assert isinstance(app.screen, PickScreen)
        await pilot.press(*"19.5K", "enter")
        await pilot.pause()

        assert source.baselines == [(19500.0, "baseline")]
        assert "19.5K baseline" in title_of(app)


async def test_baseline_that_is_no_number_and_no_run_is_refused() -> None:
    async with running("healthy") as (app, source, pilot):
        await pilot.press("b")
        await pilot.pause()
        await pilot.press(*"xyz", "enter")

        assert isinstance(app.screen, PickScreen)
        assert source.baselines == []


async def test_baseline_is_a_run_of_the_ledger_and_its_losses_stand_beside() -> None:
    source = fixtures.SCENES["healthy"]()
    source.archive = pastruns.FakeArchive()
    entry, curves = await source.archive.run("slammed4")
    assert entry.steady_tok_s is not None
    assert curves.digests["loss"].buckets
    async with running(source, size=(160, 48)) as (app, _, pilot):
        await pilot.press("b")
        await pilot.pause()
        await pilot.press(*"slammed4", "enter")
        await pilot.pause()
        await app.workers.wait_for_complete()

        assert source.baselines == [(entry.steady_tok_s, "slammed4")]
        assert source.baseline_scope == entry.scope
        against = overview(app)._against
        assert against is not None
        assert against.name == "slammed4"
        assert list(against.losses) == sorted(against.losses)


async def test_nothing_can_be_compared_with() -> None:
    async with running("healthy", size=(160, 48)) as (app, source, pilot):
        await pilot.press("b")
        await pilot.pause()
        await pilot.press(*NO_BASELINE, "enter")
        await pilot.pause()

        assert source.baselines == [(None, "")]
        assert "┈┈" not in title_of(app)


def test_warning_of_missing_times_is_amber() -> None:
    loss = series(*((NOW, step, 2.5) for step in range(100)))
    loss.untimed = True

    head = chart_panel(Metric.LOSS, fixtures.HEALTHY, {"loss": loss}, 90, 12, LOOK)[0]

    assert [span.role for span in head if "no usable times" in span.text] == [Role.WARN]
