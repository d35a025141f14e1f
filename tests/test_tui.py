"""The terminal console's own care: nothing of the interpreter's comes between a key and its answer."""

import asyncio
import gc
from collections.abc import Iterator

import pytest

from console import tui
from tests.ui import fixtures
from tests.waiting import until_async


@pytest.fixture(autouse=True)
def _collecting() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


async def test_a_key_puts_off_collecting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tui, "_PUT_OFF_S", 600.0)
    app = tui._App(fixtures.SCENES["healthy"]())
    async with app.run_test() as pilot:
        assert gc.isenabled()
        await pilot.press("x")
        assert not gc.isenabled()


async def test_collecting_goes_on_after_a_moment_however_many_keys_come(monkeypatch: pytest.MonkeyPatch) -> None:
    later: list[float] = []
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def noted(delay: float, *rest: object) -> asyncio.TimerHandle:
        later.append(delay)
        return call_later(0.0, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(loop, "call_later", noted)
        tui._put_off_collecting()
        tui._put_off_collecting()
    assert not gc.isenabled()

    await until_async(gc.isenabled, what="collecting")
    assert later == [0.1]


async def test_what_somebody_else_has_put_off_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.disable()
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", None)  # nothing may be planned

    tui._put_off_collecting()

    assert not gc.isenabled()
