"""Two consoles press restart at the same moment: one transaction, and the other is told who or what changed."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from functools import partial
from pathlib import Path

from console import configwriter
from console.demo.host import NAME
from console.engine import Engine
from console.model import Accepted
from console.reasons import ConsoleError, Exit, Reason
from tests.chaos.world import World
from tests.waiting import until, until_async

_ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "50"))
_CLI_ROUNDS = 3
_SEED = os.environ.get("CHAOS_SEED", "1")
_REPOSITORY = Path(__file__).parents[2]


async def test_of_two_consoles_that_press_restart_at_once_one_is_obeyed_and_the_other_told(tmp_path: Path) -> None:
    chance = random.Random(_SEED)
    refusals: dict[str, int] = {}
    with World(tmp_path / "host", over_ssh=False) as world:
        async with world.console("ann") as ann, world.console("bob") as bob:
            for number in range(_ROUNDS):
                refusal = await _press_both(world, ann, bob, chance.choice((0.0, 0.0, 0.02, 0.1, 0.3)))
                refusals[refusal.reason] = refusals.get(refusal.reason, 0) + 1
                assert len(await _started(world, number + 1)) == number + 1, f"round {number} with CHAOS_SEED={_SEED}"
        assert world.place.was_double() == []
        assert world.claims == []
    print(f"\n{_ROUNDS} rounds, refused with: {refusals}")
    assert sum(refusals.values()) == _ROUNDS


async def _started(world: World, count: int) -> dict[str, int]:
    """Return the starts by run, once there are so many: one may be proven before the trainer has said its word."""
    await until_async(lambda: len(world.place.starts()) >= count, what=f"the word of {count} trainers")
    return world.place.starts()


async def _press_both(world: World, ann: Engine, bob: Engine, apart_s: float) -> ConsoleError:
    """Plan on both, press on both `apart_s` apart; return what the one that came second was told."""
    plans = await asyncio.gather(ann.plan("restart"), bob.plan("restart"))
    pressed = (_pressed(ann, plans[0], 0.0), _pressed(bob, plans[1], apart_s))
    said = await asyncio.gather(*pressed)
    accepted = [each for each in said if isinstance(each, Accepted)]
    refused = [each for each in said if isinstance(each, ConsoleError)]
    assert (len(accepted), len(refused)) == (1, 1), said
    winner = "ann" if isinstance(said[0], Accepted) else "bob"
    match refused[0].reason:
        case Reason.RESTART_UNDER_WAY:
            assert refused[0].exit_code == Exit.LOCKED
            assert winner in refused[0].detail
        case Reason.PLAN_CHANGED:
            assert refused[0].exit_code == Exit.REFUSED
        case _:
            raise AssertionError(f"a refusal that doesn't tell what happened: {refused[0]!r}")
    run = accepted[0].run_id
    for engine in (ann, bob):
        await until_async(partial(_runs, engine, run), 60, f"{engine.operator} sees {run} spawned")
    return refused[0]


async def _pressed(engine: Engine, plan: object, after_s: float) -> Accepted | ConsoleError:
    await asyncio.sleep(after_s)
    try:
        return await engine.execute(plan)  # type: ignore[arg-type]
    except ConsoleError as error:
        return error


def _runs(engine: Engine, run: str) -> bool:
    now = engine.snapshot
    return now.run is not None and now.run.id == run and now.run.alive is True and now.stages[2].state == "done"


def test_of_two_command_lines_at_once_one_restarts_and_the_other_ends_with_its_code(tmp_path: Path) -> None:
    with World(tmp_path / "host", over_ssh=False) as world:
        config = tmp_path / "config.toml"
        config.write_text(configwriter.render_whole(NAME, world.target))
        hold = world.place.home / "hold"
        for number in range(_CLI_ROUNDS):
            hold.touch()  # the launch of the one goes on until the other has come, however late that is
            both = [_command_line(config, tmp_path / f"own{which}") for which in range(2)]
            until(lambda: any(each.poll() is not None for each in both), 60, "one is refused")  # noqa: B023
            hold.unlink()
            ended = [(each.communicate(timeout=120), each.returncode) for each in both]
            answers = {code: json.loads(said[0]) for said, code in ended}

            assert len(answers) == 2, ended
            assert 0 in answers, ended
            assert answers.keys() <= {0, Exit.LOCKED, Exit.REFUSED}, ended
            assert {answers[code]["reason"] for code in answers if code} <= {"restart_under_way", "plan_changed"}
            assert len(world.place.starts()) == number + 1
        assert world.place.was_double() == []


def _command_line(config: Path, own: Path) -> subprocess.Popen[str]:
    words = ["restart", "--config", str(config), "--yes", "--json", "--timeout", "90s"]
    variables = {f"XDG_{name}": str(own / name.lower()) for name in ("STATE_HOME", "CACHE_HOME", "DATA_HOME")}
    return subprocess.Popen(
        [sys.executable, "-m", "console.cli", *words],
        cwd=_REPOSITORY,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
