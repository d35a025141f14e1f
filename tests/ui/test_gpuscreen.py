"""The GPU screen: rows for any number of GPUs at any size, whole facts, and its keys."""

from __future__ import annotations

from collections import ChainMap
from datetime import UTC
from typing import Any

import pytest
from msgspec.structs import replace

from console.model import Gpu, GpuPanel, GpuPart, Snapshot
from console.ui import plot
from console.ui.app import ConsoleApp
from console.ui.present.gpucharts import GpuMetric, grid_for
from console.ui.present.gpus import gpu_panel
from console.ui.present.gpuscreen import GpuChoice, GpuPage, GpuPainter, by_role
from console.ui.present.look import ASCII, UNICODE, Look
from console.ui.present.spans import as_text, width_of
from console.ui.screens.gpus import GpuScreen
from tests.ui import fixtures
from tests.ui.screens import is_there
from tests.waiting import until_async

LOOK = Look(glyphs=UNICODE, zone=UTC)
SERIES = dict(ChainMap(*(fixtures.gpu_series(index, fixtures.NOW - 8000, fixtures.NOW) for index in range(8))))
SIZES = ((160, 48), (120, 36), (80, 24), (72, 22), (60, 20), (40, 10))


def page(snapshot: Snapshot, width: int, height: int, **choice: Any) -> GpuPage:
    plot.load()
    return GpuPainter(LOOK).paint(snapshot, SERIES, width, height, GpuChoice(**choice))


def odd_gpus() -> GpuPanel:
    """Everything that a driver may leave out or make up."""
    return replace(
        fixtures.GPUS,
        gpus=(
            Gpu(index=0),
            Gpu(
                index=1, name="[bold]A\x1b[31m\u202eB" + "漢" * 40, role="no" * 20, owner="nobody", owner_why="x" * 300
            ),
            Gpu(index=2, used_bytes=5, total_bytes=0, power_w=9e9, temperature_c=-40, clock_mhz=0, pids=(1, 2, 3)),
            Gpu(index=31, lost="gone from the bus", role="target"),
            Gpu(index=7, parts=(GpuPart(index=0, uuid="MIG-0"), GpuPart(index=6)), used_bytes=1, total_bytes=2),
        ),
    )


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", ["troubled", "many", "no-driver", "launching", "link", "failed", "connecting", "odd"])
@pytest.mark.parametrize("detail", [False, True], ids=["plots", "detail"])
def test_every_row_fits_and_no_rows_are_lost(scene: str, size: tuple[int, int], detail: bool) -> None:
    snapshot = replace(fixtures.HEALTHY, gpus=odd_gpus()) if scene == "odd" else fixtures.SCENES[scene]().snapshot

    shown = page(snapshot, *size, detail=detail, chosen=2)

    rows = [*shown.header, shown.band, *shown.body]
    assert len(rows) <= size[1]
    assert max(width_of(row) for row in rows) <= size[0]
    assert "\x1b" not in as_text(rows)


def test_thirty_two_gpus_have_a_row_each_at_eighty_columns() -> None:
    text = as_text(page(fixtures.SCENES["many"]().snapshot, 80, 23).body)

    for index in range(32):
        assert f"{index} {'T' if index < 20 else 'D'} " in text
    assert "GPU 17: gone from the bus (Xid 79)" in text


def of_a_run_before(**gpu: Any) -> Snapshot:
    first = replace(fixtures.GPUS.gpus[0], clock_mhz=None, pids=(), held_bytes=None, **gpu)
    return replace(fixtures.HEALTHY, gpus=replace(fixtures.GPUS, is_kept=True, gpus=(first,)))


@pytest.mark.parametrize("size", [(160, 47), (120, 35), (80, 23), (60, 19)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_of_a_run_before_no_driver_is_quoted(size: tuple[int, int]) -> None:
    text = as_text(page(of_a_run_before(), *size, chosen=0, detail=True).body)

    assert "of a run of before no processes are kept" in text
    assert "driver" not in text.split("GPU 0", 1)[1].replace("kept by the driver", "")
    assert not any(word in text for word in ("Xid", "MHz", "pid", "clock"))


def test_what_is_known_of_a_run_before_is_of_its_end_and_grows_no_older() -> None:
    before = of_a_run_before()

    screen = as_text(page(replace(before, ages=replace(before.ages, gpu=15.0)), 80, 23).body)
    overview = as_text(
        gpu_panel(replace(before, ages=replace(before.ages, gpu=15.0)), 60, 12, LOOK, narrow=False, wide=False)
    )

    for text in (screen, overview):
        assert " ended ─" in text.splitlines()[0]
        assert "old" not in text


@pytest.mark.parametrize(("contexts", "said"), [(None, "?/8 hold a context"), (False, "0/8 hold a context")])
def test_contexts_that_nobody_can_tell_are_not_counted_as_none(contexts: bool | None, said: str) -> None:
    launching = fixtures.LAUNCHING
    gpus = tuple(replace(each, context=contexts, owner="unknown") for each in fixtures.GPUS.gpus)
    cuda = replace(launching.stages[3], have=None, want=None, missing=())
    snapshot = replace(
        launching,
        gpus=replace(fixtures.GPUS, contexts=(), gpus=gpus),
        stages=(*launching.stages[:3], cuda, launching.stages[4]),
    )

    assert said in as_text(page(snapshot, 120, 35).body)
    assert said in as_text(gpu_panel(snapshot, 60, 12, LOOK, narrow=False, wide=False))


def test_silence_of_a_source_that_reports_no_errors_is_not_the_absence_of_errors() -> None:
    smi = replace(fixtures.HEALTHY, gpus=replace(fixtures.GPUS, source="nvidia-smi"))

    assert "no Xid was seen" in as_text(page(fixtures.HEALTHY, 120, 35, chosen=0, detail=True).body)
    assert "? Xid" in as_text(page(smi, 120, 35, chosen=0, detail=True).body)


@pytest.mark.parametrize(
    ("owner", "whose", "word"),
    [
        ("run", "this run's", "this run  "),
        ("unknown", "can not be told: no uvm", "perhaps this run  "),
        ("other", "not this run's", "not this run, which has this pid, too  "),
    ],
)
def test_a_listed_pid_of_the_run_is_called_no_more_than_it_is_proven(owner: str, whose: str, word: str) -> None:
    run = fixtures.HEALTHY.processes[0]
    why = "no uvm" if owner == "unknown" else ""
    first = replace(
        fixtures.GPUS.gpus[0], owner=owner, owner_why=why, pids=(run.pid,), held_bytes={run.pid: None}, others=()
    )
    snapshot = replace(fixtures.HEALTHY, gpus=replace(fixtures.GPUS, gpus=(first,)))

    rows = as_text(page(snapshot, 120, 35, chosen=0, detail=True).body).splitlines()

    assert next(row for row in rows if "whose    " in row).split("whose    ")[1].strip() == whose
    row = next(row for row in rows if row.strip().startswith(f"{run.pid} "))
    assert row[38:].startswith(word + run.argv[0])


def test_pids_that_no_source_lists_are_unknown_and_not_none() -> None:
    unlisted, free = (replace(each, pids=(), held_bytes=None) for each in fixtures.GPUS.gpus[:2])
    gpus = (unlisted, replace(free, owner="free"), replace(fixtures.GPUS.gpus[2], pids=(), held_bytes={}))
    snapshot = replace(fixtures.HEALTHY, gpus=replace(fixtures.GPUS, gpus=gpus))

    head, *rows = as_text(page(snapshot, 120, 35).body).splitlines()[1:5]

    at = head.index("pid") + len("pid")
    assert [row[at - 5 : at].strip() for row in rows] == ["?", "", ""]


def test_the_sentence_about_the_chosen_gpu_stands_first() -> None:
    text = as_text(page(fixtures.SCENES["troubled"]().snapshot, 80, 20, chosen=2).body)

    assert text.index("GPU 2 clock 1,410 of 1,755 MHz: power cap") < text.index("more")


def test_gpus_are_grouped_by_role() -> None:
    mixed = [replace(each, role=("target", "drafter")[each.index % 2]) for each in fixtures.GPUS.gpus[:4]]

    assert [each.index for each in by_role([*mixed, Gpu(index=9)])] == [0, 2, 1, 3, 9]


def test_a_plot_for_each_gpu_stands_where_there_is_room_and_one_for_all_elsewhere() -> None:
    assert grid_for(8, 120, 19) == (4, 2)
    assert grid_for(8, 160, 30) == (4, 2)
    assert grid_for(8, 80, 8).columns == 0
    assert grid_for(32, 120, 40).columns == 0
    assert grid_for(1, 120, 20).columns == 0


def test_in_ascii_nothing_else_is_drawn_by_the_rows() -> None:
    plot.load()
    painter = GpuPainter(Look(glyphs=ASCII, zone=UTC))

    shown = painter.paint(fixtures.SCENES["troubled"]().snapshot, {}, 120, 35, GpuChoice(chosen=3))

    row = next(text for text in as_text(shown.body).splitlines() if " 3 target" in text or "!3 target" in text)
    assert row.startswith("> !3 target  ###")


async def test_keys_choose_a_gpu_a_metric_and_its_processes() -> None:
    app = ConsoleApp(fixtures.SCENES["troubled"](), zone=UTC)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("2")
        await until_async(lambda: is_there(app, GpuScreen), what="the GPU screen")
        screen = app.screen
        assert isinstance(screen, GpuScreen)

        await pilot.press("down", "down", "down", "down", "m")
        assert (screen.choice.chosen, screen.choice.metric) == (3, GpuMetric.POWER)
        await pilot.press("enter")
        assert "GPU 3  target" in screen.text()
        await pilot.press("escape", "up")
        assert (screen.choice.chosen, screen.choice.detail) == (2, False)
        await pilot.press("1")
        await until_async(lambda: not isinstance(app.screen, GpuScreen), what="the overview")


async def test_the_table_is_copied_with_its_sentences() -> None:
    app = ConsoleApp(fixtures.SCENES["troubled"](), zone=UTC)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await until_async(lambda: is_there(app, GpuScreen), what="the GPU screen")
        screen = app.screen
        assert isinstance(screen, GpuScreen)

        text, what = screen.to_copy()

    assert what == "the GPUs"
    assert "1,410 MHz" in text
    assert text.splitlines()[-1] == "GPU 2 clock 1,410 of 1,755 MHz: power cap"
