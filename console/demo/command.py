"""`dflash-console demo`: the whole console on this machine, without a GPU and without another host."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path

from console import configwriter, tui
from console.demo import faults
from console.demo.host import NAME, DemoHost
from console.headless.follow import judge
from console.headless.session import deadline_after, first_word, opened
from console.reasons import ConsoleError, Exit, Reason
from console.ui.palette import ExtraCommand


def run(*, fault: str | None, serve: Path | None, speed: float, ascii_only: bool, light: bool) -> int:
    """Carry the command out; return its exit code. Leaves no process and no file behind."""
    if fault == "list":
        for each in faults.CATALOGUE.values():
            print(f"{each.name:<16} {each.summary}")
        return Exit.OK
    if serve is not None:
        return _serve(serve, fault, speed)
    for number in _ENDING:
        signal.signal(number, _leave)  # a closed terminal, too, ends what the demo has started
    with tempfile.TemporaryDirectory(prefix="dflash-demo-") as folder, DemoHost(Path(folder), speed=speed) as host:
        starter = threading.Thread(target=_start_first_run, args=(host, fault), daemon=True)
        starter.start()
        try:
            return _screen(host, ascii_only=ascii_only, light=light)
        finally:
            _end_undisturbed()


_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def _leave(number: int, _frame: object) -> None:
    _end_undisturbed()
    sys.exit(128 + number)


def _end_undisturbed() -> None:
    """Let no further signal end the tidying, which takes seconds at most: a closed terminal sends SIGHUP twice."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


def _screen(host: DemoHost, *, ascii_only: bool, light: bool) -> int:
    commands = [
        ExtraCommand(f"Fault: {each.name}", f"{each.summary} ({each.takes})", partial(_inject, host, each.name))
        for each in faults.CATALOGUE.values()
    ]
    commands.append(
        ExtraCommand("Fault: none", "Everything works again from the next start on.", partial(_inject, host, "none"))
    )
    return tui.run(
        NAME, host.target, read_only=False, ascii_only=ascii_only, light=light, commands=commands, ledger=_ledger(host)
    )


def _ledger(host: DemoHost) -> Path:
    """Where the demo's runs are noted: they are gone with it, and nothing of them belongs among the user's."""
    return host.folder / "ledger.sqlite3"


def _inject(host: DemoHost, name: str) -> str:
    fault = host.inject(name)
    return (
        f"{fault.name}: takes effect {'at the ' if fault.takes is faults.Takes.NEXT_START else ''}{fault.takes}"
        if fault
        else "no fault from now on"
    )


def _start_first_run(host: DemoHost, fault: str | None) -> None:
    """Start the run that the demo opens with, the way any script would, and see to its fault.

    What the trainer does wrong is in place before; what is wrong with run.sh or the link comes when the run is there,
    since otherwise there would be no run to protect.
    """
    is_later = fault is not None and faults.parse(fault)[0].by is not faults.By.TRAINER
    if fault is not None and not is_later:
        host.inject(fault)
    try:
        asyncio.run(_start(host, until_spawned=is_later))
    except (ConsoleError, OSError):
        return  # the screen shows what is wrong with the host; there is nothing to add here
    if fault is not None and is_later:
        host.inject(fault)


async def _start(host: DemoHost, *, until_spawned: bool) -> None:
    async with opened(NAME, host.target, ledger=_ledger(host)) as engine:
        await first_word(engine, deadline_after(10.0))
        accepted = await engine.execute(await engine.plan("restart"))
        if until_spawned:
            await engine.until(
                lambda snapshot: judge(snapshot, "spawned", run_id=accepted.run_id, since=0.0).settled or None,
                deadline_after(10.0),
            )


def _serve(folder: Path, fault: str | None, speed: float) -> int:
    """Serve the host until SIGINT or SIGTERM; the config file lets any other terminal in."""
    folder = folder.absolute()
    config = folder / "config.toml"
    if config.exists():
        raise ConsoleError(Reason.CONFIG, f"{config} exists already and was left as it is", Exit.USAGE)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    with DemoHost(folder, speed=speed) as host:
        configwriter.write_new(config, configwriter.render_whole(NAME, host.target))
        try:
            if fault is not None:
                host.inject(fault)
            print(f"serving on 127.0.0.1:{host.port}; control-c ends it and removes what it made", file=sys.stderr)
            print(f"dflash-console --config {config}", flush=True)
            stop.wait()
        finally:
            config.unlink(missing_ok=True)
    return Exit.OK
