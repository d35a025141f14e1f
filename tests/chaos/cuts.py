"""One cut: what is cut, at which moment of a launch, and how the truth is told afterwards."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from console.engine import Engine
from console.model import Snapshot, StageState, Verdict
from console.reasons import ConsoleError
from tests.chaos.ground import Ground, Record
from tests.chaos.world import Console, World

_SETTLES_S = 90.0
_AGREES_S = 60.0
_SLOW_S = 3.0  # told, so that what takes long is known before it takes too long
_AT_MOST_S = 1.0
_MOMENT_POLL_S = 0.004
_LOOK_S = 0.1
_LAUNCH_S = 1.4  # from the press to the second step, more or less
_STAGES = ("killing", "cache", "spawned", "running")
_ALIVE = (Verdict.LAUNCHING, Verdict.STEPPING, Verdict.RUNNING, Verdict.SLOW)


class Kind(StrEnum):
    LINK = "link cut"
    AGENT = "agent killed"
    BULK = "bulk agents killed"
    CONSOLE = "console thrown away"
    KEEPER = "keeper killed"
    WRAPPER = "wrapper killed"


OVER_SSH = tuple(Kind)
LOCALLY = tuple(kind for kind in Kind if kind is not Kind.LINK)


@dataclass(frozen=True)
class Cut:
    """The `number`-th cut of a seed: the same one every time."""

    number: int
    kind: Kind
    at_stage: str
    """Wait for the journal to name this first; empty: count from the press."""
    delay_s: float
    down_s: float

    @classmethod
    def of(cls, seed: str, number: int, kinds: tuple[Kind, ...]) -> Cut:
        chance = random.Random(f"{seed}:{number}")
        kind = chance.choice(kinds)
        at_stage = chance.choice(("", *_STAGES))
        delay_s = chance.uniform(0.0, 0.06 if at_stage else _LAUNCH_S)
        return cls(number, kind, at_stage, delay_s, chance.uniform(0.05, 0.6))


@dataclass
class Told:
    """What the console that pressed was told."""

    run: str | None = None
    error: ConsoleError | None = None


async def carry_out(world: World, cut: Cut, console: Console) -> Console:
    """Launch, cut, and compare what a fresh console shows with the ground; return that one. Closes `console`.

    Raises: AssertionError.
    """
    before = world.place.run_ids()
    told, lost_keeper = Told(), None
    try:
        plan = await console.engine.plan("restart")
        assert plan.refused == (), plan.refused
        pressing = asyncio.create_task(_press(console.engine, told, plan))
        await _moment(world, cut, before)
        lost_keeper = _cut(world, cut, console.engine)
        if cut.kind is Kind.CONSOLE:
            pressing.cancel()
        elif cut.kind in (Kind.LINK, Kind.AGENT, Kind.WRAPPER):
            await asyncio.sleep(cut.down_s)
            console.engine.retry_link()
        await asyncio.wait([pressing], timeout=60)
        assert pressing.done(), "execute never came back"
        if not pressing.cancelled():
            pressing.result()
        if cut.kind is not Kind.CONSOLE:
            await _settle(world)
            await _agree(world, console.engine)
    finally:
        await console.close()
    await _settle(world)
    fresh = await world.open("ops2")
    try:
        await _agree(world, fresh.engine)
        _account(world, before, told, lost_keeper, cut)
    except BaseException:
        await fresh.close()
        raise
    return fresh


async def _press(engine: Engine, told: Told, plan: object) -> None:
    try:
        told.run = (await engine.execute(plan)).run_id  # type: ignore[arg-type]
    except ConsoleError as error:
        told.error = error


async def _moment(world: World, cut: Cut, before: set[str]) -> None:
    """Wait for the moment of the cut, or a second at most where the launch is over before it."""
    deadline = time.monotonic() + _AT_MOST_S
    while cut.at_stage and time.monotonic() < deadline:
        new = _new_records(world, before)
        if any(each.state == cut.at_stage or each.stage(cut.at_stage) for each in new):
            break
        await asyncio.sleep(_MOMENT_POLL_S)
    await asyncio.sleep(cut.delay_s)


def _new_records(world: World, before: set[str]) -> list[Record]:
    return [record for record in map(world.place.run, world.place.run_ids() - before) if record is not None]


def _cut(world: World, cut: Cut, engine: Engine) -> str | None:
    """Do it; return the run whose keeper was killed."""
    match cut.kind:
        case Kind.LINK:
            world.cut_link(engine, cut.down_s)
        case Kind.AGENT:
            world.kill_agent(engine)
        case Kind.BULK:
            world.kill_bulk_agents(engine)
        case Kind.WRAPPER:
            world.kill_wrappers()
        case Kind.KEEPER:
            return world.kill_keeper()
        case Kind.CONSOLE:
            pass
    return None


async def _settle(world: World) -> None:
    if not await _comes_true(lambda: world.look().is_settled, _SETTLES_S):
        raise AssertionError(f"the ground doesn't settle: {world.look()}")


async def _agree(world: World, fresh: Engine) -> None:
    """Wait until the fresh console tells what is there; it must, within seconds, and a moment later still."""
    began, wrong, story = time.monotonic(), ["?"], [""]

    def agrees() -> bool:
        ground = world.look()
        wrong[:] = differences(fresh.snapshot, ground)
        if wrong and story[-1].partition(" ")[2] != (now := f"{fresh.snapshot.link.state}: {'; '.join(wrong)}"):
            story.append(f"{time.monotonic() - began:.1f} {now}")
        return not wrong and world.look().key() == ground.key()

    agreed = await _comes_true(agrees, _AGREES_S)
    world.agreed_s.append(time.monotonic() - began)
    if not agreed:
        told = "\n    ".join(story[1:])
        raise AssertionError(f"{wrong}\n  shown: {_brief(fresh.snapshot)}\n  ground: {world.look()}\n  {told}")
    if world.agreed_s[-1] > _SLOW_S:
        print(f"agreed after {world.agreed_s[-1]:.1f} s:", *story[1:], sep="\n    ", flush=True)


async def _comes_true(predicate: Callable[[], bool], within_s: float) -> bool:
    """Look now and then: a look at the ground costs some milliseconds of the loop that the consoles live in."""
    deadline = time.monotonic() + within_s
    while not predicate():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_LOOK_S)
    return True


def differences(now: Snapshot, ground: Ground) -> list[str]:
    """Return what a settled console says that isn't so."""
    wrong = []
    if len(ground.trainers) > 1:
        wrong.append(f"{len(ground.trainers)} runs at once: {ground.trainers}")
    run, newest = now.run, ground.newest
    for pid, mark in ground.trainers.items():
        if run is None or run.alive is not True:
            wrong.append(f"pid {pid} lives and isn't shown alive")
        elif run.id not in (mark, None) or (run.by_hand and run.pid != pid):
            wrong.append(f"another run is shown than the one that lives: {mark}")
        record = ground.record(mark)
        if record is not None and record.is_interrupted:
            if now.verdict is not Verdict.INTERRUPTED and not (run and run.by_hand):
                wrong.append("an interrupted restart isn't called so")
        elif now.verdict is not Verdict.STEPPING:
            wrong.append(f"it steps, and {now.verdict} is shown")
        if run is not None and not run.by_hand and run.keeper_alive is not (record.keeper_lives if record else None):
            wrong.append("the keeper's life is told wrongly")
    if not ground.trainers:
        if run is not None and run.alive:
            wrong.append("a run is shown alive and none lives")
        if now.verdict in _ALIVE:
            wrong.append(f"nothing lives, and {now.verdict} is shown")
        if newest is not None and newest.is_interrupted and now.verdict is not Verdict.INTERRUPTED:
            wrong.append("a half-done restart isn't called interrupted")
    if (now.verdict is Verdict.INTERRUPTED) and not (newest is not None and newest.is_interrupted):
        wrong.append("interrupted is shown, and the newest restart isn't")
    if now.lock is not None:
        wrong.append("a lock is shown, and nobody holds it")
    return wrong


def _account(world: World, before: set[str], told: Told, lost_keeper: str | None, cut: Cut) -> None:
    """What was taken was carried out once; what was refused not at all; nothing ran twice or beside another."""
    place = world.place
    assert place.was_double() == [], f"two runs at once: {place.was_double()}"
    starts = place.starts()
    assert place.all_trainers() == place.trainers()
    assert max(starts.values(), default=0) <= 1, f"started twice: {starts}"
    new = _new_records(world, before)
    assert len(new) <= 1, f"one press, {len(new)} requests: {[each.id for each in new]}"
    if told.run is not None:
        assert [each.id for each in new] == [told.run]
    for record in new:
        if record.was_taken and record.id != lost_keeper:
            assert starts[record.id] == 1, f"taken and never started: {record}"
            assert record.state == "running", f"taken and not carried out: {record}"
        if record.state == "refused":
            assert starts[record.id] == 0, f"refused and started: {record}"
    is_spared = cut.kind in (Kind.CONSOLE, Kind.KEEPER)
    assert is_spared or told.run is not None, f"not accepted: {told.error!r}; {new}"
    assert world.claims == [], "\n".join(world.claims)


def _brief(now: Snapshot) -> str:
    """Return what a console shows, in a few lines."""
    stages = " ".join(f"{each.stage}={each.state}" for each in now.stages if each.state is not StageState.PENDING)
    return (
        f"{now.verdict} {stages} link={now.link.state} lock={now.lock} {now.ages} at={now.at:.1f} {now.log} {now.run}"
    )
