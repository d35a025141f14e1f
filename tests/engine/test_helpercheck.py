"""What `doctor` says of the helper on the host: reachable and what it sees, not wanted, or refused and why."""

from __future__ import annotations

import os
import sys

import pytest

from console import protocol
from console.config import Target
from console.engine import helpercheck
from console.link.agents import open_agent
from console.link.payload import build_payload, entry_line
from console.link.transport import LocalConnection

APART = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


async def looked(target: Target) -> helpercheck.Found:
    """The check beside an agent that was started through the target's prefix."""
    connection, payload = LocalConnection(), entry_line("agent") + build_payload()
    try:
        async with open_agent(
            connection, target, payload, on_event=lambda event, data: None, on_held=lambda error: None
        ) as agent:
            return await helpercheck.look(connection, target, agent.started.hello)
    finally:
        await connection.close()


def target(*prefix: str, helper: bool | None = True) -> Target:
    return Target(host="local", exec=prefix, python=sys.executable, host_helper=helper)


def _hello() -> protocol.Hello:
    """Of an agent in a pid namespace that this machine does not have."""
    return protocol.Hello(
        v=1, pid=4, start=5, pid_ns="pid:[1]", python="3.11", boot="b/1", user="root", uid=0, node="n", bt=1.0,
        wall=1.0, booted_wall=0.0, systemd=False,
    )  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a pid namespace")
async def test_helper_that_finds_the_container_says_what_it_sees() -> None:
    found = await looked(target(*APART))

    seen = "the container's pids, memory and freezing"
    assert seen in found.detail
    assert (found.state, found.detail.split(":")[0]) in (
        ("ok", "reachable by python3"),
        ("warn", "reachable, but can't see the kernel log"),  # where even root may not read it
    )


async def test_prefix_that_leads_nowhere_else_is_told() -> None:
    found = await looked(target("env"))

    assert "no other pid namespace" in found.detail or "can't see the kernel log" in found.detail


async def test_helper_that_finds_no_such_container_is_a_warning_with_the_reason() -> None:
    hello = _hello()

    found = await helpercheck.look(LocalConnection(), target("env"), hello)

    assert found.state == "warn"
    assert found.detail.startswith("reachable, but can't see the container's pids, memory and freezing: ")
    assert found.next


async def test_host_that_lets_no_helper_in_is_a_warning_and_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpercheck, "PYTHON", "/nowhere/python3")

    found = await looked(target("env"))

    assert found.state == "warn"
    assert found.detail.startswith("refused: ")
    assert "/nowhere/python3" in found.detail
    assert "host_helper = false" in found.next


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (target("pct", "exec", "200", helper=False), "turned off by `host_helper = false`"),
        (target(), "none is needed"),
        (target("env", helper=None), "not configured for a run on this machine"),
    ],
)
async def test_helper_that_is_not_wanted_is_all_right_and_said(wanted: Target, words: str) -> None:
    hello = _hello()

    found = await helpercheck.look(LocalConnection(), wanted, hello)

    assert found.state == "ok"
    assert words in found.detail
