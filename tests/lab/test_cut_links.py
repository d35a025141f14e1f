"""Links that are cut or go silent: the host goes on, the console comes back and has missed nothing."""

import asyncio

from console.link import channel
from console.model import LinkState
from console.reasons import Reason
from console.state.logbuffer import EntryKind, LogBuffer
from tests.lab.training import SCRIPT, Training, finished, lost_by, reach
from tests.lab.wire import Wire
from tests.waiting import until, until_async

_LINES = 100_000
_COUNTING = f"""import sys, time
for block in range({_LINES} // 500):
    sys.stdout.write("".join(f"line {{block * 500 + n}} of many\\n" for n in range(1, 501)))
    sys.stdout.flush()
    time.sleep(0.02)
time.sleep(600)
"""


def test_cut_between_kill_and_spawn_leaves_one_whole_restart(training: Training) -> None:
    training.fault("ignore-term")
    first = training.restart()
    training.container.remove("/root/fault")
    config = training.config(stop={"grace_s": 600.0})
    restart = training.console("restart", "--yes", "--json", "--timeout", "90s", config=config)
    try:
        until(lambda: len(training.run_ids()) == 2, 60, "the second restart is taken")
        (second,) = set(training.run_ids()) - {first.json["id"]}
        until(lambda: '"killing"' in _journal(training, second), 60, "it is killing")
        # Both of its connections: on a busy machine the second may come late.
        until(lambda: len(training.agents()) == 2, 60, "both agents watch")

        assert training.lab.host().cut() >= 2

        assert first.json["pid"] in training.container.processes()
        training.container.run(["kill", "-KILL", str(first.json["pid"])])  # its grace is over
    finally:
        done = finished(restart)
    assert done.code == 0, done
    assert done.json["id"] == second
    assert [each["state"] for each in done.json["stages"]] == ["done"] * 5
    assert training.mains() == [done.json["pid"]]
    assert len(training.run_ids()) == 2


async def test_every_line_arrives_once_and_in_order_through_ten_cuts(training: Training) -> None:
    training.container.write(f"/root/{SCRIPT}", _COUNTING)
    training.write_run()
    host = training.lab.host()
    async with training.engine() as engine:
        engine.log.__init__(max_lines=2 * _LINES)  # type: ignore[misc]
        await engine.execute(await engine.plan("restart"))
        for cut in range(1, 11):
            await _read_until(engine.log, cut * _LINES // 11)
            assert await lost_by(engine, host.cut) >= 1
            engine.retry_link()  # as the operator would: so many cuts in a row make the pauses long
            await reach(engine, lambda now: now.link.state is LinkState.UP, 60)
        await _read_until(engine.log, _LINES)

        entries = [engine.log.line(number) for number in range(engine.log.first, engine.log.end)]

    texts = [entry.text for entry in entries if entry is not None and entry.kind is EntryKind.LINE]
    assert texts == [f"line {number} of many" for number in range(1, _LINES + 1)]
    assert not [entry for entry in entries if entry is not None and entry.kind is EntryKind.GAP]


async def test_silently_dropped_packets_are_a_lost_link_within_five_seconds(training: Training, wire: Wire) -> None:
    assert channel.SILENCE_S < 5  # the clock of a busy machine would say something else
    first = await asyncio.to_thread(training.restart)
    async with training.engine(training.config("wire")) as engine:
        await reach(engine, lambda now: now.verdict == "stepping" and now.progress.step is not None)
        unseen: list[str] = []
        engine.on_change.append(lambda: unseen.extend([each] if (each := engine.snapshot.log.lost) else []))
        for _ in range(2):
            unseen.clear()
            await asyncio.to_thread(wire.drop)
            lost = await reach(engine, lambda now: now.link.state is LinkState.LOST, 60)
            assert (lost.link.reason, lost.run and lost.run.id) == (Reason.LINK_LOST, first.json["id"])
            # On a busy machine the log's connection may be missed first: then no step was seen at the end.
            assert lost.last_known == ("running" if unseen else "stepping")
            await asyncio.to_thread(wire.restore)
            engine.retry_link()
            await reach(engine, lambda now: now.link.state is LinkState.UP and now.verdict == "stepping", 60)
        # Agents that were cut off end with their lease; only those of now are left, and one wrapper for each.
        await until_async(lambda: len(training.agents()) == 2, 60, "no pile of agents")
        assert training.wrappers()
    await asyncio.to_thread(training.await_no_agents)
    await until_async(lambda: not training.wrappers(), 60, "no wrapper is left")
    assert training.mains() == [first.json["pid"]]


def _journal(training: Training, run: str) -> str:
    return training.container.read(f"/root/.local/state/dflash-console/targets/lab/runs/{run}/status.json")


async def _read_until(log: LogBuffer, number: int) -> None:
    await until_async(lambda: _last(log) >= number, 60, f"line {number}")


def _last(log: LogBuffer) -> int:
    """Return the number in the newest counted line."""
    entry = log.line(log.end - 1)
    return int(entry.text.split()[1]) if entry is not None and entry.text.startswith("line ") else 0
