"""The supervised link: up, down, again; bulk beside control; nothing left behind. Real SSH and local processes."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from console.config import Target
from console.link import retries
from console.link.agents import open_agent
from console.link.channel import SILENCE_S
from console.link.events import AgentSaid, BulkDown, BulkUp, LinkDown, LinkUp, Rtt
from console.link.link import Link, describe
from console.link.transport import Connection, connect
from console.protocol import LogCredit, LogFollow, LogRead, Ping
from console.reasons import ConsoleError, Exit, Reason
from tests.link.conftest import Heard, Serve, target_of, trust, write_key
from tests.link.fakeagent import PAYLOAD
from tests.link.servers import LOOPBACK, wired
from tests.waiting import until_async


@asynccontextmanager
async def running(target: Target, heard: Heard, payload: bytes = PAYLOAD) -> AsyncIterator[Link]:
    link = Link("t", target, payload=lambda: payload, on_event=heard.append)
    task = asyncio.create_task(link.run())
    try:
        yield link
    finally:
        assert not task.done(), task
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 20)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries that don't keep a test waiting."""
    monkeypatch.setattr(retries, "FIRST_S", 0.01)
    monkeypatch.setattr(retries, "LONGEST_S", 0.05)


def local() -> Target:
    return Target(python=sys.executable)


async def until_up(heard: Heard, count: int = 1) -> None:
    await until_async(lambda: len(heard.of(LinkUp)) >= count and len(heard.of(BulkUp)) >= count, 60)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_local_link_comes_up_asks_and_leaves_nothing(heard: Heard) -> None:
    before = asyncio.all_tasks()

    async with running(local(), heard) as link:
        await until_up(heard)
        reply = await link.request(Ping(id=link.next_id()))
        _, data = await link.bulk_request(LogRead(id=link.next_id(), path="x", offset=0, length=512))
        link.bulk_send(LogCredit(bytes=1))
        await until_async(lambda: heard.of(Rtt))

    assert reply.data["bt"] == 10.5
    assert len(data) == 512
    assert (heard.of(Rtt)[0].bt, heard.of(Rtt)[0].wall) == (10.5, 1000.5)
    assert isinstance(heard[0], LinkUp)
    assert heard[0].rtt_s > 0
    assert heard.of(LinkDown) == []
    assert is_gone(heard[0].hello.pid)
    assert asyncio.all_tasks() == before


async def test_nothing_can_be_asked_while_the_link_is_down() -> None:
    link = Link("t", local(), payload=lambda: PAYLOAD, on_event=lambda event: None)

    with pytest.raises(ConsoleError) as caught:
        await link.request(Ping(id=1))

    assert (caught.value.reason, caught.value.exit_code) == (Reason.NO_LINK, Exit.LINK)
    link.bulk_send(LogCredit(bytes=1))


async def test_killed_agent_is_told_and_replaced(heard: Heard, quick: None) -> None:
    async with running(local(), heard):
        await until_up(heard)

        os.kill(heard.of(LinkUp)[0].hello.pid, signal.SIGKILL)
        await until_up(heard, 2)

    down = heard.of(LinkDown)
    assert [event.reason for event in down] == [Reason.AGENT_ENDED]
    assert down[0].retry_in_s is not None
    assert heard.of(LinkUp)[0].hello.pid != heard.of(LinkUp)[1].hello.pid


async def test_stopped_agent_is_a_lost_link_within_five_seconds_and_is_killed(heard: Heard) -> None:
    async with running(local(), heard):
        await until_up(heard)
        pid = heard.of(LinkUp)[0].hello.pid

        os.kill(pid, signal.SIGSTOP)
        await until_async(lambda: heard.of(LinkDown))

        assert SILENCE_S < 5
        assert heard.of(LinkDown)[0].reason is Reason.LINK_LOST
        assert f"for {SILENCE_S:g} s" in heard.of(LinkDown)[0].detail
        await until_async(lambda: is_gone(pid))


async def test_requests_under_way_fail_when_the_link_does(heard: Heard, quick: None) -> None:
    async with running(local(), heard) as link:
        await until_up(heard)
        pid = heard.of(LinkUp)[0].hello.pid
        os.kill(pid, signal.SIGSTOP)
        asked = asyncio.create_task(link.request(Ping(id=link.next_id()), 10))
        await asyncio.sleep(0)

        os.kill(pid, signal.SIGKILL)

        with pytest.raises(ConsoleError) as caught:
            await asked
        assert caught.value.reason is Reason.AGENT_ENDED


async def test_silent_cut_is_noticed_within_five_seconds_and_healed(
    home: Path, key: Path, serve: Serve, heard: Heard
) -> None:
    server = await serve()
    async with wired(server.port) as wire:
        (home / ".ssh" / "known_hosts").write_text(server.known_hosts_line().replace(str(server.port), str(wire.port)))
        async with running(target_of(server, key, port=wire.port, python=sys.executable), heard):
            await until_up(heard)

            wire.freeze()
            await until_async(lambda: heard.of(LinkDown))
            wire.thaw()
            await until_up(heard, 2)

        assert SILENCE_S < 5
        assert f"for {SILENCE_S:g} s" in heard.of(LinkDown)[0].detail
        assert heard.of(LinkDown)[0].reason is Reason.LINK_LOST
        assert heard.of(LinkDown)[0].retry_in_s == pytest.approx(0.5, rel=0.25)
        await until_async(lambda: not server.alive)


async def test_cut_of_the_control_connection_takes_bulk_along_and_both_return(
    home: Path, key: Path, serve: Serve, heard: Heard, quick: None
) -> None:
    server = await serve()
    trust(home, server)
    async with running(target_of(server, key, python=sys.executable), heard):
        await until_up(heard)

        server.connections[0].abort()
        await until_up(heard, 2)

    assert [type(event) for event in heard if not isinstance(event, Rtt)] == [LinkUp, BulkUp, LinkDown, LinkUp, BulkUp]
    assert heard.of(LinkDown)[0].reason is Reason.LINK_LOST


async def test_cut_of_the_bulk_connection_leaves_control_alone(
    home: Path, key: Path, serve: Serve, heard: Heard, quick: None
) -> None:
    server = await serve()
    trust(home, server)
    async with running(target_of(server, key, python=sys.executable), heard) as link:
        await until_up(heard)

        server.connections[1].abort()
        await until_async(lambda: heard.of(BulkDown))
        assert (await link.request(Ping(id=link.next_id()))).ok
        await until_async(lambda: len(heard.of(BulkUp)) == 2)

    assert heard.of(LinkDown) == []
    assert [event.shared for event in heard.of(BulkUp)] == [False, False]


async def test_silent_bulk_connection_is_replaced(
    home: Path, key: Path, serve: Serve, heard: Heard, quick: None
) -> None:
    others = set(children())
    async with running(local(), heard) as link:
        await until_up(heard)
        await link.bulk_request(LogFollow(id=link.next_id(), path="x", offset=0))
        await until_async(lambda: heard.of(AgentSaid))
        control = heard.of(LinkUp)[0].hello.pid
        (stopped,) = [pid for pid in children() if pid != control and pid not in others]

        os.kill(stopped, signal.SIGSTOP)
        await until_async(lambda: heard.of(BulkDown))

        assert heard.of(LinkDown) == []
        await until_async(lambda: is_gone(stopped))


async def test_bulk_connects_beside_the_control_agent_and_is_told_of_after_it(
    home: Path, key: Path, serve: Serve, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve()
    trust(home, server)
    may_start = asyncio.Event()

    @asynccontextmanager
    async def late(*arguments: Any, **options: Any) -> AsyncIterator[Any]:
        await may_start.wait()
        async with open_agent(*arguments, **options) as agent:
            yield agent

    monkeypatch.setattr("console.link.link.open_agent", late)
    async with running(target_of(server, key, python=sys.executable), heard) as link:
        await until_async(lambda: server.alive)  # bulk's
        early = [*heard], link.has_bulk
        may_start.set()
        await until_async(lambda: link.has_bulk)

    assert early == ([], False)
    assert [type(event) for event in heard if isinstance(event, LinkUp | BulkUp)] == [LinkUp, BulkUp]
    await until_async(lambda: not server.alive)


async def test_where_the_control_agent_has_failed_bulk_waits_for_it(
    home: Path, key: Path, serve: Serve, heard: Heard, quick: None
) -> None:
    server = await serve()
    trust(home, server)
    target = target_of(server, key, python=sys.executable)
    async with running(target, heard, payload=b"raise SystemExit(3)\n") as link:
        for attempt in (1, 2, 3):
            await until_async(lambda: len(heard.of(LinkDown)) == attempt)  # noqa: B023
            link.retry_now()

    assert len(server.connections) <= 5  # two for the first attempt, one for each of the others, and one under way
    assert not heard.of(BulkUp)
    assert not heard.of(BulkDown)


@pytest.mark.parametrize("limit", ["connections", "login"])
async def test_host_that_gives_one_connection_gets_a_second_channel_on_it(
    limit: str, home: Path, key: Path, serve: Serve, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve(max_connections=1 if limit == "connections" else None)
    trust(home, server)
    link = Link("t", target_of(server, key, python=sys.executable), payload=lambda: PAYLOAD, on_event=heard.append)
    if limit == "login":

        async def connect_and_forget_the_key(target: Target) -> Connection:
            connection = await connect(target)
            server.authorized.write_text("")
            return connection

        monkeypatch.setattr("console.link.link.connect", connect_and_forget_the_key)
    task = asyncio.create_task(link.run())
    await until_up(heard)

    _, data = await link.bulk_request(LogRead(id=link.next_id(), path="x", offset=0, length=256))

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(data) == 256
    assert heard.of(BulkUp)[0].shared
    assert "no second connection" in heard.of(BulkUp)[0].detail
    assert len(server.connections) == 2
    await until_async(lambda: not server.alive)


async def test_host_that_gives_neither_says_so_and_control_stays_up(
    home: Path, key: Path, serve: Serve, heard: Heard, quick: None
) -> None:
    server = await serve(max_connections=1, max_sessions=1)
    trust(home, server)
    async with running(target_of(server, key, python=sys.executable), heard) as link:
        await until_async(lambda: len(heard.of(BulkDown)) >= 2)

        assert (await link.request(Ping(id=link.next_id()))).ok

    assert "refuses another session" in heard.of(BulkDown)[0].detail
    assert heard.of(LinkDown) == []
    assert len(server.connections) == 2


async def test_refused_login_is_not_retried_before_somebody_asks(
    home: Path, key: Path, serve: Serve, heard: Heard, quick: None
) -> None:
    server = await serve()
    trust(home, server)
    stranger = write_key(home / "stranger")
    async with running(target_of(server, stranger), heard) as link:
        await until_async(lambda: heard.of(LinkDown))
        assert heard.of(LinkDown)[0].reason is Reason.LOGIN_REFUSED
        assert heard.of(LinkDown)[0].retry_in_s is None

        link.retry_now()
        await until_async(lambda: len(heard.of(LinkDown)) == 2)

    assert len(server.connections) == 2
    assert heard.of(LinkDown)[1].attempt == 2


async def test_retry_now_ends_a_long_wait(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_S", 600.0)
    monkeypatch.setattr(retries, "LONGEST_S", 600.0)
    async with running(local(), heard) as link:
        link.retry_now()  # while an attempt is under way: nothing to end, and not remembered
        await until_up(heard)
        os.kill(heard.of(LinkUp)[0].hello.pid, signal.SIGKILL)
        await until_async(lambda: heard.of(LinkDown))
        assert heard.of(LinkDown)[0].retry_in_s > 400

        link.retry_now()

        await until_up(heard, 2)


async def test_retry_now_ends_the_wait_of_bulk_alone(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_S", 600.0)
    monkeypatch.setattr(retries, "LONGEST_S", 600.0)
    others = set(children())
    async with running(local(), heard) as link:
        await until_up(heard)
        control = heard.of(LinkUp)[0].hello.pid
        (other,) = set(children()) - others - {control}
        os.kill(other, signal.SIGKILL)
        await until_async(lambda: heard.of(BulkDown))
        assert heard.of(BulkDown)[0].retry_in_s > 400

        link.retry_now()

        await until_async(lambda: len(heard.of(BulkUp)) == 2)
    assert heard.of(LinkDown) == []


async def test_failures_in_a_row_wait_longer_and_longer(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_S", 0.01)
    target = Target(host=LOOPBACK, port=1, user="me")
    async with running(target, heard):
        await until_async(lambda: len(heard.of(LinkDown)) >= 5)

    down = heard.of(LinkDown)[:5]  # on a busy machine there may be more by now
    waits = [event.retry_in_s for event in down]
    assert [event.attempt for event in down] == [1, 2, 3, 4, 5]
    assert waits == [pytest.approx(0.01 * 2**number, rel=0.21) for number in range(5)]


async def test_python_that_is_missing_is_told_once(heard: Heard, tmp_path: Path) -> None:
    async with running(Target(python=str(tmp_path / "none")), heard) as link:
        await until_async(lambda: heard.of(LinkDown))
        link.retry_now()
        await until_async(lambda: len(heard.of(LinkDown)) == 2)

    assert [event.reason for event in heard.of(LinkDown)] == [Reason.PYTHON_MISSING] * 2
    assert [event.retry_in_s for event in heard.of(LinkDown)] == [None] * 2


async def test_twenty_reconnects_leave_no_task_process_or_file_descriptor(
    home: Path, key: Path, serve: Serve, heard: Heard, quick: None
) -> None:
    server = await serve()
    trust(home, server)
    target = target_of(server, key, python=sys.executable)
    async with running(target, heard):
        await until_up(heard)
        tasks, descriptors = len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))

        for count in range(2, 22):
            for connection in server.open_connections:
                connection.abort()
            await until_up(heard, count)

        await until_async(lambda: len(server.alive) == 2, what="only the two agents of now are alive")
        await until_async(lambda: len(asyncio.all_tasks()) <= tasks, what="as many tasks as before")
        await until_async(lambda: len(os.listdir("/proc/self/fd")) <= descriptors, what="as many descriptors as before")
    await until_async(lambda: not server.alive)
    assert len(heard.of(LinkDown)) == 20


async def test_twenty_local_reconnects_leave_no_process(heard: Heard, quick: None) -> None:
    others = set(children())
    async with running(local(), heard):
        await until_up(heard)
        for count in range(2, 22):
            os.kill(heard.of(LinkUp)[-1].hello.pid, signal.SIGKILL)
            await until_up(heard, count)
        await until_async(lambda: len(set(children()) - others) == 2, what="only the agents of now are left")

    await until_async(lambda: set(children()) <= others, what="no agent is left")


async def test_label_tells_the_way(home: Path, key: Path, serve: Serve, heard: Heard) -> None:
    jump, server = await serve(), await serve()
    trust(home, jump, server)
    place = f"ops@{LOOPBACK}:{jump.port}"
    target = target_of(server, key, jump=place, python=sys.executable, exec=("env", "-i", "--"))
    async with running(target, heard) as link:
        await until_up(heard)

        assert link.label == heard.of(LinkUp)[0].label == f"me@{LOOPBACK}:{server.port} · via {place}"


def test_label_before_anything_is_known_is_that_of_the_config() -> None:
    target = Target(host="10.1.2.6", user="root", jump="ops@jump", exec=("pct", "exec", "200", "--"))

    assert describe(target) == "root@10.1.2.6 · via ops@jump · pct 200"
    assert describe(Target()) == "local"
    assert describe(Target(host="gpu1", exec=("docker", "exec", "-i", "train"))) == "gpu1 · docker train"


def children() -> list[int]:
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(pid) for pid in path.read_text().split()]
