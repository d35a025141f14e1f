"""What the console remembers, on real runs of the demo's host: several consoles, other people's launches, bad files."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from console.config import Deadlines, Stop, Target
from console.demo.host import DemoHost
from console.engine import Engine
from console.engine import past as past_module
from console.engine.past import Past
from console.history import ledger
from console.history.entry import Entry, Observed, entry
from console.model import Accepted, Overrides, Stage, Verdict
from console.protocol import StateEvent
from console.reasons import ConsoleError, Reason
from console.state import events
from console.state.baseline import Baseline
from tests.engine.consoles import REACH_S, console, launch, stepping
from tests.headless.running import prove_starts_at
from tests.history.records import TARGET, record
from tests.state.story import Story
from tests.waiting import until_async


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoHost]:
    with DemoHost(tmp_path_factory.mktemp("demo"), speed=8.0, load_s=6.0) as made:
        yield made


@pytest.fixture
def target(host: DemoHost) -> Target:
    """The demo's target; the ledger is a new one for every test."""
    host.inject("none")
    return replace(
        host.target,
        stop=Stop(grace_s=1.0),
        deadlines=Deadlines(killing=20.0, cache=10.0, spawned=10.0, cuda=30.0, stepping=60.0),
    )


async def free(engine: Engine) -> None:
    await engine.execute(await engine.plan("stop"))
    await until_async(lambda: engine.snapshot.run is not None and engine.snapshot.run.alive is False, 60.0, "gone")


def rows() -> dict[str, Entry]:
    """The ledger's rows by id, whatever the place."""
    if not ledger.default_path().exists():
        return {}
    with closing(sqlite3.connect(ledger.default_path(), timeout=20.0)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
            return {}  # the file is there, and its tables are not yet
        places = connection.execute("SELECT DISTINCT place, target FROM runs").fetchall()
    with ledger.opened(ledger.default_path()) as book:
        return {row.id: row for place, target in places for row in book.entries(place, target)}


def noted(run: Accepted) -> Entry:
    """The ledger's row of a run, an empty one before it is written: a thread does that, however late."""
    return rows().get(run.run_id) or Entry(id=run.run_id)


async def test_launches_are_written_down_and_time_the_next_one(host: DemoHost, target: Target) -> None:
    async with console(target) as engine:
        first = await launch(engine)
        assert engine.snapshot.usual_launches == 0
        await stepping(engine, first)
        async with console(target, "ops2") as later:
            await until_async(lambda: _agree(first, engine, later), 60, "the same times here, there and on record")
        one = engine.snapshot

        plan = await engine.plan("restart")
        second = await launch(engine)
        await until_async(lambda: engine.snapshot.usual_launches == 1, 60, "the first launch is usual")
        under_way = engine.snapshot
        await stepping(engine, second)
        kept = await engine.plan("restart", Overrides(keep_cache=True))
        await free(engine)

    row = rows()[first.run_id]
    stages = {status.stage: status for status in one.stages}
    assert row.name == first.name
    assert row.operator == "ops1"
    assert row.cache == "cleared"
    assert row.spawned_s == pytest.approx(stages[Stage.SPAWNED].took_s)
    assert (row.cuda_s, row.stepping_s) == (stages[Stage.CUDA].took_s, stages[Stage.STEPPING].took_s)
    # Nothing was killed for the first, so how long that takes is not known yet.
    known = (row.cache_s, row.spawned_s, row.cuda_s, row.stepping_s)
    assert plan.usual_launch_s == pytest.approx(sum(filter(None, known)))
    assert plan.usual_launches == 1
    assert plan.usual_other_s is None
    assert (plan.since, plan.since_stepped) == (first.name, True)
    usual = {status.stage: status.usual_s for status in under_way.stages}
    assert usual[Stage.STEPPING] == row.stepping_s
    assert usual[Stage.CUDA] == row.cuda_s
    assert (kept.usual_launch_s, kept.usual_launches) == (None, 0)
    assert kept.usual_other_s is not None


def _agree(run: Accepted, *engines: Engine) -> bool:
    """Whether each console shows the stages' times as the keeper noted them, and the ledger has those, too."""
    row = rows().get(run.run_id)
    shown = [engine.snapshot.stages[3:] for engine in engines]
    took = {tuple(status.took_s for status in stages) for stages in shown}
    noted = all(status.noted for stages in shown for status in stages)
    return row is not None and noted and took == {(row.cuda_s, row.stepping_s)}


async def test_launches_of_others_count_and_are_known_to_a_console_opened_later(
    host: DemoHost, target: Target, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mine = ledger.default_path()
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
        async with console(target, "ops2") as other:
            run = await launch(other)
            await stepping(other, run)
            await free(other)
    assert not mine.exists()

    async with console(target):
        await until_async(lambda: mine.exists() and run.run_id in rows(), 60, "written down")

    row = rows()[run.run_id]
    assert (row.operator, row.is_over) == ("ops2", True)
    assert row.cuda_s is not None


async def test_two_consoles_share_the_ledger_and_a_third_plans_by_it_however_slow_it_is(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with console(target) as one, console(target, "ops2") as two:
        run = await launch(one)
        await asyncio.gather(stepping(one, run), stepping(two, run))
        await until_async(lambda: noted(run).stepped, 60, "written down")
        await free(two)
        for engine in (one, two):
            assert not [each for each in engine.snapshot.warnings if each.slug == Reason.LEDGER_UNUSABLE]

    assert rows()[run.run_id].is_over
    answers, opened = threading.Event(), ledger.opened

    @contextmanager
    def slowly(path: Path) -> Iterator[ledger.Ledger]:
        answers.wait(20.0)
        with opened(path) as book:
            yield book

    monkeypatch.setattr(ledger, "opened", slowly)
    monkeypatch.setattr(past_module, "_READY_S", 20.0)
    async with console(target, "ops3") as third:
        planning = asyncio.create_task(third.plan("restart"))
        await asyncio.sleep(0)  # it is on its way
        answers.set()
        plan = await planning

    assert (plan.since, plan.since_stepped) == (run.name, True)


async def test_failed_run_says_what_changed_since_the_last_good_one(
    host: DemoHost, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with console(target) as engine:
        good = await launch(engine)
        await stepping(engine, good)
        await until_async(lambda: noted(good).stepped, 60, "written down")
        host.inject("exit-at-once")
        script = target.command[0]
        _edit(Path(script))
        prove_starts_at(30.0, monkeypatch)
        bad = await launch(engine, Overrides(env={"DFLASH_SPLIT_FC_LAYERS": "1"}, args=("--fast",)))

        await until_async(lambda: engine.snapshot.verdict is Verdict.FAILED, REACH_S, "failed")
        await until_async(lambda: engine.snapshot.changes is not None, 60, "what changed")
        failed = engine.snapshot
        await until_async(lambda: noted(bad).is_judged, 60, "written down")
        plan = await engine.plan("restart", Overrides(base=failed.good))

    changes = failed.changes
    assert changes is not None
    assert changes.since == good.name
    told = {(each.kind, each.what): (each.then, each.now) for each in changes.items if each.kind in ("env", "argv")}
    assert told[("env", "DFLASH_SPLIT_FC_LAYERS")] == ("0", "1")
    assert told[("argv", "")] == (script, f"{script} --fast")
    files = [(each.then, each.now) for each in changes.items if each.what == script]
    assert ("mode 0755", "0700") in files
    assert len(files) == 2
    assert "train_dflash_pipeline.py" in changes.same
    row = rows()[bad.run_id]
    assert (row.outcome, row.failed_stage, row.reason) == ("failed", "spawned", "missing_module")
    assert failed.good is not None
    assert failed.good.name == good.name
    # The last good run's settings: as the config says, but for the scripts, which are as they are.
    assert plan.argv == target.command
    assert plan.env_changed == {}
    assert plan.from_run == good.name
    assert plan.since == good.name


def _edit(script: Path) -> None:
    script.write_text(script.read_text() + "# edited\n")
    script.chmod(0o700)


async def test_settings_of_a_past_run_are_taken_again(target: Target) -> None:
    async with console(target) as engine:
        odd = await launch(engine, Overrides(env={"BATCH": "8"}, unset=("DFLASH_SPLIT_FC_LAYERS",), args=("--fast",)))
        await stepping(engine, odd)
        plain = await launch(engine)
        await stepping(engine, plain)

        base = await engine.past_run(odd.name)
        again = await launch(engine, Overrides(base=base))
        await stepping(engine, again)
        with pytest.raises(ConsoleError, match="nosuch") as refused:
            await engine.past_run("nosuch")
        await free(engine)

    one, two = rows()[odd.run_id].settings, rows()[again.run_id].settings
    assert (two.env, two.unset, two.argv, two.cwd) == (one.env, one.unset, one.argv, one.cwd)
    assert two.env == {"BATCH": "8"}
    assert refused.value.reason is Reason.RUN_UNKNOWN


async def test_secret_of_a_past_run_comes_from_the_config_or_is_asked_for(target: Target) -> None:
    with_key = replace(target, env={**target.env, "API_KEY": "s3cret"})
    async with console(with_key) as engine:
        run = await launch(engine)
        await stepping(engine, run)
        base = await engine.past_run(run.run_id)
        await engine.plan("restart", Overrides(base=base))
        await free(engine)
    assert base.settings.env["API_KEY"].startswith("hmac:")
    assert b"s3cret" not in ledger.default_path().read_bytes()

    async with console(target) as engine:
        with pytest.raises(ConsoleError, match="API_KEY") as refused:
            await engine.plan("restart", Overrides(base=base))
        plan = await engine.plan("restart", Overrides(base=base, env={"API_KEY": "other"}))

    assert refused.value.reason is Reason.SECRET_NOT_KEPT
    assert plan.from_run == run.name


async def test_ledger_that_can_not_be_used_is_one_warning_and_nothing_else(target: Target) -> None:
    path = ledger.default_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"no database at all, but somebody's notes " * 50)

    async with console(target) as engine:
        run = await launch(engine)
        snapshot = await stepping(engine, run)
        await free(engine)

    said = [each for each in snapshot.warnings if each.slug == Reason.LEDGER_UNUSABLE]
    assert len(said) == 1
    assert "not a database" in said[0].detail
    assert path.read_bytes().startswith(b"no database at all")


async def test_ledger_that_is_locked_for_long_holds_nobody_up_and_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ledger, "BUSY_S", 0.2)
    path = tmp_path / "ledger.sqlite3"
    with ledger.opened(path) as book:
        book.record("here", TARGET, [])
    told: list[events.Event] = []
    clock = [100.0]
    past = Past(TARGET, clears_cache=True, feed=told.append, now=lambda: clock[0], path=path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    async with asyncio.TaskGroup() as tasks:
        past.tasks = tasks
        past.reached("here")
        past.host_said(StateEvent(bt=0.0, wall=0.0, run=record(1)), "r-1")
        await until_async(lambda: _failures(caplog) == 1, 60, "tried")
        clock[0] += 61.0
        past.host_said(StateEvent(bt=0.5, wall=0.5, run=record(1)), "r-1")
        await until_async(lambda: _failures(caplog) == 2, 60, "tried again a minute later")
        holder.execute("ROLLBACK")
        holder.close()
        clock[0] += 61.0
        past.host_said(StateEvent(bt=1.0, wall=1.0, run=record(1)), "r-1")
        await until_async(lambda: path.exists() and _ids(path) == ["r-1"], 60, "written")
    await past.close()

    assert sum(isinstance(each, events.ConsoleWarned) for each in told) == 1


async def test_what_was_being_written_when_the_console_closed_is_written_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "BUSY_S", 0.2)
    path = tmp_path / "ledger.sqlite3"
    with ledger.opened(path) as book:
        book.record("here", TARGET, [])
    may_open, opened = threading.Event(), ledger.opened

    @contextmanager
    def slowly(at: Path) -> Iterator[ledger.Ledger]:
        may_open.wait(20.0)
        with opened(at) as book:
            yield book

    monkeypatch.setattr(ledger, "opened", slowly)
    past = Past(TARGET, clears_cache=True, feed=lambda event: None, now=lambda: 100.0, path=path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    past.tasks = tasks = asyncio.TaskGroup()
    async with tasks:
        past.host_said(StateEvent(bt=0.0, wall=0.0, run=record(1)), "r-1")
        past.reached("here")
        await until_async(_writes, 60, "it is at it")
        assert past._working is not None
        past._working.cancel()
        may_open.set()
    await until_async(lambda: not _writes(), 60, "the disk has refused it")
    assert _ids(path) == []
    holder.execute("ROLLBACK")
    holder.close()

    await past.close()

    assert _ids(path) == ["r-1"]


async def test_what_is_known_of_the_past_is_told_though_nothing_can_be_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.sqlite3"
    with ledger.opened(path) as book:
        book.record("here", TARGET, [Entry(id="r-0", name="slammed4", steady_tok_s=18_000.0)])

    def refused(*_: object) -> None:
        raise ledger.NotWritten(f"{path}: database or disk is full")

    monkeypatch.setattr(ledger.Ledger, "record", refused)
    told: list[events.Event] = []
    past = Past(TARGET, clears_cache=True, baseline="slammed4", feed=told.append, now=lambda: 100.0, path=path)

    async with asyncio.TaskGroup() as tasks:
        past.tasks = tasks
        past.host_said(StateEvent(bt=0.0, wall=0.0, run=record(1)), "r-1")
        past.reached("here")
        await until_async(lambda: any(isinstance(each, events.ConsoleWarned) for each in told), 60, "the warning")

    known = [each.baseline.tok_s for each in told if isinstance(each, events.HistoryKnown)]
    assert known[-1] == 18_000.0
    assert sum(isinstance(each, events.ConsoleWarned) for each in told) == 1


async def test_whose_tokens_the_rate_of_the_baseline_counts_is_told_with_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite3"
    with ledger.opened(path) as book:
        book.record("here", TARGET, [Entry(id="r-0", name="slammed4", steady_tok_s=18_000.0, scope="rank")])
    told: list[events.Event] = []
    past = Past(TARGET, clears_cache=True, baseline="slammed4", feed=told.append, now=lambda: 100.0, path=path)

    async with asyncio.TaskGroup() as tasks:
        past.tasks = tasks
        past.reached("here")
        await past.ready()
    await past.close()

    known = [each.baseline for each in told if isinstance(each, events.HistoryKnown)]
    assert known[-1] == Baseline(tok_s=18_000.0, name="slammed4", scope="rank")


async def test_clock_that_drifts_is_no_news_for_the_ledger(tmp_path: Path) -> None:
    story = Story().stepping(20)
    past = Past("ct200", clears_cache=True, feed=lambda event: None, now=lambda: story.at, path=tmp_path / "ledger")
    past.host_said(StateEvent(bt=story.bt, wall=story.at, run=story.record), story.record.id)
    past.watched(story.snapshot)
    noted = past._due[story.record.id]

    story.tell(events.LinkRtt(at=story.at, rtt_s=0.01, bt=story.bt, wall=story.at + 0.004))
    past.watched(story.snapshot)
    assert past._due[story.record.id] is noted
    story.tell(events.LinkRtt(at=story.at, rtt_s=0.01, bt=story.bt, wall=story.at + 3600))
    past.watched(story.snapshot)

    assert noted.first_step_wall is not None
    assert past._due[story.record.id].first_step_wall == pytest.approx(noted.first_step_wall + 3600, abs=0.1)


def _writes() -> bool:
    return any(thread.name == "ledger" for thread in threading.enumerate())


async def test_first_plan_may_wait_until_the_ledger_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite3"
    with ledger.opened(path) as book:
        book.record("here", TARGET, [entry(record(1), Observed(stepped=True))])
    past = Past(TARGET, clears_cache=True, feed=lambda event: None, now=lambda: 100.0, path=path)

    async with asyncio.TaskGroup() as tasks:
        past.tasks = tasks
        past.reached("here")
        await past.ready()

        assert past.outlook.newest is not None
        assert past.outlook.newest.id == "r-1"


def _failures(caplog: pytest.LogCaptureFixture) -> int:
    return sum("the ledger can't be used" in each.getMessage() for each in caplog.records)


def _ids(path: Path) -> list[str]:
    with ledger.opened(path) as book:
        return [row.id for row in book.entries("here", TARGET)]
