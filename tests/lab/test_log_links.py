"""The connection of the log alone is lost: steps are unseen, that is said, and no line is missed in the end."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from console.engine import Engine, following
from console.engine.logflow import CREDIT_BYTES
from console.link import retries
from console.link.link import Link
from console.model import LinkState, Snapshot, Verdict
from console.protocol import LogCredit
from console.state import outcome
from console.state.logbuffer import EntryKind
from tests.lab.commands import argv_of
from tests.lab.training import SCRIPT, Training, reach
from tests.waiting import until_async

_LINES = 60_000
_COUNTING = f"""import sys, time
for block in range({_LINES} // 500):
    sys.stdout.write("".join(f"line {{block * 500 + n}} of many\\n" for n in range(1, 501)))
    sys.stdout.flush()
    time.sleep(0.02)
time.sleep(600)
"""


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait for the next attempt that only the operator ends."""
    monkeypatch.setattr(retries, "FIRST_S", 600.0)
    monkeypatch.setattr(retries, "LONGEST_S", 600.0)


@pytest.mark.usefixtures("patient")
async def test_steps_are_unseen_while_only_the_log_is_lost_and_c_brings_them_back(training: Training) -> None:
    await asyncio.to_thread(training.restart)
    async with training.engine() as engine:
        await reach(engine, lambda now: now.verdict == Verdict.STEPPING and now.progress.usual_step_s is not None)
        with _held(training, engine):
            lost = await reach(engine, lambda now: now.log.lost is not None, 60)
            unseen = await reach(engine, lambda now: now.verdict == Verdict.RUNNING, 60)

            assert lost.link.state is LinkState.UP
            assert (_slug(unseen), outcome.check_exit_code(unseen)) == ("log_lost", 6)
            assert unseen.reason is not None
            assert "steps unseen for " in unseen.reason.detail
            assert (unseen.progress.rate.now, unseen.link.state) == (None, LinkState.UP)

            engine.retry_link()
            back = await reach(engine, lambda now: now.verdict == Verdict.STEPPING, 60)

    assert (back.reason, back.log.lost) == (None, None)


async def test_silent_log_connection_is_missed_and_every_line_arrives_once(training: Training) -> None:
    training.container.write(f"/root/{SCRIPT}", _COUNTING)
    training.write_run()
    async with training.engine() as engine:
        engine.log.__init__(max_lines=2 * _LINES)  # type: ignore[misc]
        await engine.execute(await engine.plan("restart"))
        await until_async(lambda: engine.log.end > 2_000, 60, "lines come")
        with _held(training, engine):
            await reach(engine, lambda now: now.log.lost is not None, 60)
            await reach(engine, lambda now: now.log.lost is None, 60)
        await until_async(lambda: _newest(engine) == f"line {_LINES} of many", 60, "the last line")

        assert _texts(engine) == [f"line {number} of many" for number in range(1, _LINES + 1)]


async def test_follow_that_is_answered_too_late_is_asked_again_and_no_line_comes_twice(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_REQUEST_S", 0.4)
    training.container.write(f"/root/{SCRIPT}", _COUNTING)
    training.write_run()
    async with training.engine() as engine:
        engine.log.__init__(max_lines=2 * _LINES)  # type: ignore[misc]
        link = engine._link
        assert isinstance(link, Link)
        await until_async(lambda: link._bulk.channel is not None, 60)
        with _held(training, engine):
            await engine.execute(await engine.plan("restart"))
            # The agent is there and doesn't answer: told, though the connection itself is up.
            waits = await reach(engine, lambda now: now.log.lost is not None, 60)
            # On the log's connection, whichever is due; on a busy machine it is missed before anything is asked.
            told = [f"no answer to {each} " for each in ("LogFollow", "LogRead", "Recorder")] + [
                "no word from the host"
            ]
            assert any(words in (waits.log.lost or "") for words in told), waits.log.lost
        await until_async(lambda: _newest(engine) == f"line {_LINES} of many", 60, "the last line")

        assert _texts(engine) == [f"line {number} of many" for number in range(1, _LINES + 1)]


async def test_plan_is_made_though_the_link_flaps(training: Training) -> None:
    first = await asyncio.to_thread(training.restart)
    host = training.lab.host()
    async with training.engine() as engine:
        for _ in range(3):
            await reach(engine, lambda now: now.link.state is LinkState.UP, 60)
            planned = asyncio.create_task(engine.plan("restart"))
            await asyncio.sleep(0)  # it is asked
            assert await asyncio.to_thread(host.cut) >= 1
            plan = await asyncio.wait_for(planned, 30)
            assert plan.replaced_id == first.json["id"]
    assert training.mains() == [first.json["pid"]]


async def test_host_sends_no_more_log_than_it_has_credit_for(training: Training) -> None:
    training.container.write(f"/root/{SCRIPT}", _COUNTING)
    training.write_run()
    async with training.engine() as engine:
        engine.log.__init__(max_lines=2 * _LINES)  # type: ignore[misc]
        held: list[int] = []
        send = engine._link.bulk_send
        engine._link.bulk_send = lambda operation: held.append(operation.bytes)  # type: ignore[method-assign]
        await engine.execute(await engine.plan("restart"))
        known = await reach(engine, lambda now: now.log.path is not None and now.log.size_bytes is not None, 60)
        log = training.container.path(known.log.path or "")
        await until_async(lambda: log.stat().st_size > 3 * CREDIT_BYTES, 60, "the log is longer than the credit")

        await until_async(lambda: engine._following._flow.next_offset >= CREDIT_BYTES, 60)
        assert engine._following._flow.next_offset == CREDIT_BYTES

        engine._link.bulk_send = send  # type: ignore[method-assign]
        send(LogCredit(bytes=sum(held)))
        await until_async(lambda: _newest(engine) == f"line {_LINES} of many", 60, "the last line")
        assert _texts(engine) == [f"line {number} of many" for number in range(1, _LINES + 1)]


class _held:
    """The agent of the log's connection stopped for the length of a block, as a connection that has fallen silent."""

    def __init__(self, training: Training, engine: Engine) -> None:
        agents = [pid for pid in training.agents() if pid != (engine.hello.pid if engine.hello else 0)]
        assert len(agents) == 1, agents
        self._pid = training.container.outside(agents[0])

    def __enter__(self) -> None:
        os.kill(self._pid, signal.SIGSTOP)

    def __exit__(self, *exc_info: object) -> None:
        if "dflash-agent" in "".join(argv_of(self._pid)):
            os.kill(self._pid, signal.SIGCONT)


def _slug(snapshot: Snapshot) -> str | None:
    return snapshot.reason.slug if snapshot.reason is not None else None


def _newest(engine: Engine) -> str:
    """Return the newest line: to go through all of them at each look would hold the reading up."""
    entries = [engine.log.line(number) for number in range(max(engine.log.first, engine.log.end - 5), engine.log.end)]
    return next((each.text for each in reversed(entries) if each is not None and each.kind is EntryKind.LINE), "")


def _texts(engine: Engine) -> list[str]:
    return list(_lines(engine))


def _lines(engine: Engine) -> Iterator[str]:
    for number in range(engine.log.first, engine.log.end):
        entry = engine.log.line(number)
        if entry is not None and entry.kind is EntryKind.LINE:
            yield entry.text
