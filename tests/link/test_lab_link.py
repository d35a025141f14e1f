"""The link over OpenSSH's sshd and a pct shim into real containers: straight, through a jump host, over a cut wire."""

import asyncio
import statistics
import time
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from console.config import Config, Target
from console.link import bootstrap, killtest
from console.link.agents import closing
from console.link.channel import SILENCE_S
from console.link.events import BulkUp, LinkDown, LinkUp
from console.link.link import Link
from console.link.payload import build_payload, entry_line
from console.link.transport import connect
from console.protocol import Ping
from console.reasons import Reason
from tests.lab.containers import Container
from tests.lab.session import Lab, Setting, Way
from tests.lab.sshd import Sshd
from tests.lab.wire import Wire
from tests.link.conftest import Heard
from tests.link.fakeagent import PAYLOAD
from tests.waiting import until_async

pytestmark = pytest.mark.usefixtures("home")


def target_in(lab: Lab, container: Container | None, way: Way = "host", **settings: Setting) -> Target:
    text = lab.config(container, way=way, **settings)
    return msgspec.convert(tomllib.loads(text), Config).targets["lab"]


@asynccontextmanager
async def running(target: Target, heard: Heard, payload: bytes = PAYLOAD) -> AsyncIterator[Link]:
    link = Link("lab", target, payload=lambda: payload, on_event=heard.append)
    task = asyncio.create_task(link.run())
    try:
        yield link
    finally:
        assert not task.done(), task
        task.cancel()
        await asyncio.wait([task], timeout=20)
        assert task.cancelled()


async def until_up(heard: Heard, count: int = 1) -> None:
    def both() -> bool:
        refused = [event for event in heard.of(LinkDown) if event.retry_in_s is None and not event.held]
        assert not refused, refused
        return len(heard.of(LinkUp)) >= count and len(heard.of(BulkUp)) >= count

    await until_async(both, 60)


@pytest.mark.parametrize("way", ["host", "jump"])
async def test_agent_comes_up_in_the_container_and_leaves_it_empty(
    way: Way, lab: Lab, container: Container, heard: Heard
) -> None:
    target = target_in(lab, container, way)

    async with running(target, heard) as link:
        await until_up(heard)
        reply = await link.request(Ping(id=link.next_id()))
        inside = container.pids_of("-Iqi")

    assert reply.ok
    assert not heard.of(BulkUp)[0].shared
    assert len(inside) == 2
    assert heard.of(LinkUp)[0].hello.pid in inside
    await until_async(lambda: not container.pids_of("-Iqi"), what="no agent is left in the container")
    assert (" · via " in link.label) == (way == "jump")


async def test_real_agent_says_hello_from_inside(lab: Lab, container: Container, heard: Heard) -> None:
    payload = entry_line("agent") + build_payload()

    async with running(target_in(lab, container), heard, payload):
        await until_up(heard)

    assert heard.of(LinkUp)[0].hello.uid == 0
    assert heard.of(LinkUp)[0].hello.pid > 1


async def test_bootstrap_adds_little_to_what_a_bare_command_costs(
    lab: Lab, plain_container: Container, heard: Heard
) -> None:
    """Root's rc files and lxc-attach cost what they cost; on a calm machine the rest is about 0.1 s."""
    target = target_in(lab, plain_container)
    bare, whole = [], []
    for count in range(1, 6):
        began = time.monotonic()
        async with closing(await connect(target)) as connection:
            process = await connection.open([*target.exec, "true"])
            assert (await process.wait()).code == 0
            bare.append(time.monotonic() - began)
        began = time.monotonic()
        async with running(target, heard):
            await until_async(lambda count=count: len(heard.of(LinkUp)) == count, 60)  # type: ignore[misc]
            whole.append(time.monotonic() - began)

    print(f"bare {statistics.median(bare):.3f} s, with the agent {statistics.median(whole):.3f} s")
    # On a calm machine a half more. What a busy one adds it adds to some of them.
    assert min(whole) < 5 * min(bare)


async def test_killed_sshd_session_is_healed_and_leaves_one_pair_of_agents(
    lab: Lab, host: Sshd, plain_container: Container, heard: Heard
) -> None:
    async with running(target_in(lab, plain_container), heard):
        await until_up(heard)

        assert host.cut() > 0
        await until_up(heard, 2)

        await until_async(lambda: len(plain_container.pids_of("-Iqi")) == 2, what="only the agents of now are left")
    assert heard.of(LinkDown)[0].reason is Reason.LINK_LOST


async def test_dropped_wire_is_a_lost_link_within_five_seconds(
    lab: Lab, wire: Wire, plain_container: Container, heard: Heard
) -> None:
    async with running(target_in(lab, plain_container, "wire"), heard):
        await until_up(heard)

        wire.drop()
        await until_async(lambda: heard.of(LinkDown))
        wire.restore()

        await until_up(heard, 2)
    assert SILENCE_S < 5
    assert heard.of(LinkDown)[0].reason is Reason.LINK_LOST
    assert f"for {SILENCE_S:g} s" in heard.of(LinkDown)[0].detail


async def test_incomplete_python_is_named(lab: Lab, minimal_container: Container, heard: Heard) -> None:
    async with running(target_in(lab, minimal_container), heard):
        await until_async(lambda: heard.of(LinkDown), 60)

    assert heard.of(LinkDown)[0].reason is Reason.PYTHON_INCOMPLETE
    assert "json" in heard.of(LinkDown)[0].detail
    assert heard.of(LinkDown)[0].retry_in_s is None


async def test_missing_python_in_the_container_is_named(lab: Lab, plain_container: Container, heard: Heard) -> None:
    async with running(target_in(lab, plain_container, python="python-not-there"), heard):
        await until_async(lambda: heard.of(LinkDown), 60)

    assert heard.of(LinkDown)[0].reason is Reason.PYTHON_MISSING


async def test_missing_wrapper_on_the_host_is_named(lab: Lab, heard: Heard) -> None:
    async with running(target_in(lab, None, exec=["vzctl-not-there", "exec", "200"]), heard):
        await until_async(lambda: heard.of(LinkDown), 60)

    assert heard.of(LinkDown)[0].reason is Reason.WRAPPER_MISSING


async def test_missing_container_is_called_stopped_since_lxc_says_the_same_of_both(lab: Lab, heard: Heard) -> None:
    async with running(target_in(lab, None, exec=["pct", "exec", "999", "--"]), heard):
        await until_async(lambda: heard.of(LinkDown), 60)

    assert heard.of(LinkDown)[0].reason is Reason.CONTAINER_STOPPED
    assert heard.of(LinkDown)[0].retry_in_s is None


async def test_container_that_stops_and_starts_again_is_found_again(lab: Lab, heard: Heard) -> None:
    container = lab.fresh_container("plain")
    async with running(target_in(lab, container), heard):
        await until_up(heard)

        await asyncio.to_thread(container.stop)
        await until_async(lambda: Reason.CONTAINER_STOPPED in [event.reason for event in heard.of(LinkDown)], 60)
        await asyncio.to_thread(container.start)

        await until_async(lambda: len(heard.of(LinkUp)) == 2, 60)


async def test_frozen_container_is_named_and_the_attempt_goes_on_when_it_thaws(
    lab: Lab, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "ANSWER_S", 2.0)
    monkeypatch.setattr(killtest, "HOST_ANSWER_S", 30.0)
    container = lab.fresh_container("plain")
    container.freeze()
    try:
        async with running(target_in(lab, container), heard):
            await until_async(lambda: heard.of(LinkDown), 60)
            held = heard.of(LinkDown)[0]
            assert (held.reason, held.held, held.retry_in_s) == (Reason.CONTAINER_FROZEN, True, None)

            monkeypatch.setattr(bootstrap, "ANSWER_S", 20.0)
            container.thaw()
            await until_up(heard)
    finally:
        container.thaw()
    assert len(heard.of(LinkDown)) == 1
