"""Opening the terminal console: an engine and the app on top of it, for as long as the screen is open."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.events import Event, Key

from console import configfile
from console.config import Target
from console.configeditor import ConfigEntry
from console.engine import Engine
from console.engine.replay import Replay, target_of
from console.engine.tape import Tape
from console.headless.session import operator, origin
from console.link.loading import load
from console.reasons import Exit
from console.ui.app import ConsoleApp
from console.ui.palette import ExtraCommand

_SETTLED_S = 3.0
"""So long after the first picture what stays for good is there: asyncssh, plotext, the first screen, the link."""
_PUT_OFF_S = 0.1
_COLLECT_AFTER = 10_000
"""Fresh objects; Python's own 700 are made by one paint."""


def no_config_yet(path: Path | None) -> bool:
    """Whether there is nothing to open: no config was named and the usual one isn't there."""
    return path is None and not configfile.default_path().exists()


def run_without_config(*, ascii_only: bool, light: bool) -> int:
    """Show the page that says how to begin; its `d` opens the demo."""
    chosen = ConsoleApp(None, ascii_only=ascii_only, light=light, config_path=str(configfile.default_path())).run()
    if chosen == "demo":
        from console.demo import command

        return command.run(fault=None, serve=None, speed=1.0, ascii_only=ascii_only, light=light)
    return Exit.OK


def run(
    name: str,
    target: Target,
    *,
    read_only: bool,
    ascii_only: bool,
    light: bool,
    commands: Sequence[ExtraCommand] = (),
    entry: ConfigEntry | None = None,
    ledger: Path | None = None,
) -> int:
    """Show the target until the operator quits; return the exit code. `entry`: its place in the config file; `ledger`:
    where runs are noted, if not in the user's own."""
    gc.disable()  # until `_settle`
    engine = Engine(name, target, operator=operator(), origin=origin(), read_only=read_only, ledger=ledger)
    app = _App(engine, read_only=read_only, ascii_only=ascii_only, light=light, extra=commands, entry=entry)
    return _run_app(engine, app)


def replay(tape: Tape, *, speed: float, ascii_only: bool, light: bool) -> int:
    """Play a recording in the same screens until the operator quits; return the exit code."""
    player = Replay(tape, speed=speed)
    engine = Engine(tape.target, target_of(tape), operator=operator(), origin=origin(), read_only=True, tape=player)
    app = _App(engine, read_only=True, ascii_only=ascii_only, light=light)
    return _run_app(engine, app)


class _App(ConsoleApp):
    """Tells when there is something on the screen, and lets no collection come before a key's answer."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.is_painted = asyncio.Event()

    def painted(self) -> None:
        self.is_painted.set()

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key):
            _put_off_collecting()
        await super().on_event(event)


def _put_off_collecting() -> None:
    """A paint makes enough to begin a collection, which takes 5 ms and now and then 25: not while a key is answered.
    Asked for again meanwhile it changes nothing: what keys that are held down leave behind is collected, too."""
    if gc.isenabled():
        gc.disable()
        asyncio.get_running_loop().call_later(_PUT_OFF_S, gc.enable)


async def _watch(engine: Engine, app: _App) -> None:
    """Watch once the first picture is there: what connecting needs would hold it up by 0.2 s, and no key is to wait for
    it either. The rest is loaded while the host starts its part: beside each other both loads would take longer."""
    await app.is_painted.wait()
    await asyncio.to_thread(load)
    app.load_rest()
    await engine.run()


async def _settle(painted: asyncio.Event) -> None:
    """Look at what was there at the start once, and never again: it is 100,000 objects, and looking at them all takes
    50 ms, again and again, during which no key is served. Before that nothing is collected: it would hold up the first
    picture."""
    try:
        await painted.wait()
        await asyncio.sleep(_SETTLED_S)
        gc.collect()
        gc.freeze()
    finally:
        gc.set_threshold(_COLLECT_AFTER, 10, 10)
        gc.enable()


def _run_app(engine: Engine, app: _App) -> int:
    """Run to the end; a signal that ends us is a quit, once and again, so that what was started is tidied up.

    Not by the loop's own handlers, which leave the default action behind when the loop closes: a closed terminal sends
    SIGHUP twice, and the second one would end the tidying.
    """
    quitting = _Quitting(app)
    before = {number: signal.signal(number, quitting.ask) for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)}
    try:
        return asyncio.run(_run(engine, app, quitting))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Quitting:
    """Hands a signal over to the app, also one that comes before there is a loop."""

    def __init__(self, app: _App) -> None:
        self._app = app
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_asked = False

    def ask(self, _number: int, _frame: object) -> None:
        self._is_asked = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._app.exit)

    def serve(self) -> None:
        """Answer from now on."""
        self._loop = asyncio.get_running_loop()
        if self._is_asked:
            self._loop.call_soon(self._app.exit)


async def _run(engine: Engine, app: _App, quitting: _Quitting) -> int:
    watching = asyncio.create_task(_watch(engine, app))
    settling = asyncio.create_task(_settle(app.is_painted))
    watching.add_done_callback(lambda task: None if task.cancelled() else app.exit())
    quitting.serve()
    try:
        await app.run_async()
    finally:
        settling.cancel()
        watching.cancel()
        await asyncio.wait([watching, settling])
    if not watching.cancelled() and (failure := watching.exception()) is not None:
        raise failure
    return app.return_code or Exit.OK
