"""Whether exit statuses come back out of a container, tried on wrappers that are honest, that swallow, that hang."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.link import killtest
from console.link.transport import LocalConnection
from console.reasons import ConsoleError, Exit, Reason


@pytest.fixture
def wrapper(tmp_path: Path) -> Path:
    return tmp_path / "pct"


def write(path: Path, body: str) -> list[str]:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return [str(path)]


async def tried(prefix: list[str]) -> killtest.Tried:
    connection = LocalConnection()
    try:
        return await killtest.try_kill(connection, prefix)
    finally:
        await connection.close()


async def test_without_a_wrapper_the_signal_is_seen() -> None:
    found = await tried([])

    assert found.is_told
    assert found.ended.signal == "9"


async def test_an_honest_wrapper_returns_137(wrapper: Path) -> None:
    found = await tried(write(wrapper, '"$@"'))

    assert found.is_told
    assert found.ended.code == 137


@pytest.mark.parametrize("body", ['"$@"; exit 0', '"$@" | cat', '"$@" || true'])
async def test_a_wrapper_that_swallows_the_status_is_found_out(wrapper: Path, body: str) -> None:
    found = await tried(write(wrapper, body))

    assert not found.is_told
    assert found.ended.code == 0


async def test_what_the_wrapper_complains_about_is_kept(wrapper: Path) -> None:
    found = await tried(write(wrapper, "echo CT 200 not running >&2; exit 255"))

    assert not found.is_told
    assert found.printed == ("CT 200 not running",)


async def test_a_wrapper_that_is_not_there_ends_with_127() -> None:
    found = await tried(["/nowhere/pct"])

    assert (found.ended.code, found.is_told) == (127, False)


async def test_a_way_that_hangs_while_the_host_answers_is_a_frozen_container(
    wrapper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(killtest, "ANSWER_S", 0.3)
    monkeypatch.setattr(killtest, "HOST_ANSWER_S", 30.0)

    with pytest.raises(ConsoleError) as caught:
        await tried(write(wrapper, "exec sleep 60"))

    assert (caught.value.reason, caught.value.exit_code) == (Reason.CONTAINER_FROZEN, Exit.ENTRY)
