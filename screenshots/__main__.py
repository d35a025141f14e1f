"""Make the pictures of the README from the running product: `python -m screenshots [NAME ...]`.

Each picture is the real console on the demo's host: real SSH, agent, keeper and processes; only trainer and GPUs are
simulated. Nothing is drawn by hand, and a state that isn't reached in time is an error.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

from console.demo.host import NAME, DemoHost
from console.engine import Engine
from console.model import Snapshot, Stage, StageState, Verdict
from console.ui.app import ConsoleApp

HERE = Path(__file__).parent
_REACHED_S = 180.0
# The picture must not fetch anything when it is looked at: the fonts are those of the reader's machine.
_FONT_FACES = re.compile(r"@font-face\s*\{[^}]*\}\s*")
_FONTS = '"Fira Code", "DejaVu Sans Mono", Menlo, Consolas, monospace'


@dataclass(frozen=True, slots=True)
class Scene:
    """One target on one screen, with what brings it into the state to be shown."""

    host: DemoHost
    engine: Engine
    pilot: Pilot[str]

    async def until(self, wanted: Callable[[Snapshot], bool], what: str) -> None:
        """Wait for a state of the engine. Raises: TimeoutError that names it."""
        deadline = asyncio.get_running_loop().time() + _REACHED_S
        if await self.engine.until(lambda now: True if wanted(now) else None, deadline) is None:
            raise TimeoutError(f"not reached within {_REACHED_S:.0f} s: {what}")

    async def start(self) -> None:
        await self.until(lambda _: self.engine.has_word, "the host's first word")
        await self.engine.execute(await self.engine.plan("restart"))

    async def stepping(self, steps: int) -> None:
        await self.until(lambda now: (now.progress.step or 0) >= steps, f"step {steps}")

    async def settle(self) -> None:
        """Let the screen show the newest snapshot: one announcement and one paint later it does."""
        await asyncio.sleep(0.5)
        await self.pilot.pause()


Act = Callable[[Scene], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Picture:
    name: str
    title: str
    size: tuple[int, int]
    act: Act
    speed: float = 1.0


async def _healthy(scene: Scene) -> None:
    await scene.start()
    await scene.stepping(900)


async def _launching(scene: Scene) -> None:
    await scene.start()
    await scene.until(
        lambda now: any(s.stage is Stage.CUDA and s.state is StageState.ACTIVE and s.have == 6 for s in now.stages),
        "six of eight contexts",
    )


async def _failed(scene: Scene) -> None:
    await scene.start()
    await scene.stepping(3)
    scene.host.inject("oom-load:6")
    await scene.engine.execute(await scene.engine.plan("restart"))
    await scene.until(lambda now: now.verdict is Verdict.FAILED and "GPUs are free" in _safe(now), "the failure")


def _safe(snapshot: Snapshot) -> str:
    return snapshot.reason.safe if snapshot.reason is not None else ""


async def _plan(scene: Scene) -> None:
    await scene.start()
    await scene.stepping(250)
    await scene.pilot.press("r")
    await scene.until(lambda _: len(scene.pilot.app.screen_stack) > 2, "the plan")
    await asyncio.sleep(1.5)


async def _link_lost(scene: Scene) -> None:
    await scene.start()
    await scene.stepping(300)
    scene.host.cut_link(120.0)
    await scene.until(lambda now: now.verdict is Verdict.LINK_LOST and (now.ages.link or 0) > 8, "the lost link")


async def _stalled(scene: Scene) -> None:
    await scene.start()
    await scene.stepping(300)
    scene.host.inject("stall")
    await scene.until(lambda now: now.verdict is Verdict.STALLED, "the stall")


PICTURES = (
    Picture("healthy", "stepping", (160, 48), _healthy, speed=20.0),
    Picture("launching", "a launch under way", (120, 36), _launching),
    Picture("failed", "a launch that failed", (120, 36), _failed, speed=3.0),
    Picture("plan", "the plan of a restart", (120, 36), _plan, speed=10.0),
    Picture("link-lost", "the link is lost", (120, 36), _link_lost, speed=10.0),
    Picture("stalled", "a stall", (120, 36), _stalled, speed=10.0),
    Picture("small", "80 columns", (80, 24), _healthy, speed=20.0),
)


async def take(picture: Picture) -> Path:
    """Bring the demo into the picture's state and write what the screen shows. Raises: SystemExit when told to end."""
    told: list[int] = []
    taking = asyncio.create_task(_take(picture))

    def leave(number: int) -> None:
        if not told:  # a second one must not interrupt the tidying
            taking.cancel()
        told.append(number)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, leave, number)
    await asyncio.wait([taking])
    if told:
        sys.exit(128 + told[0])
    return taking.result()


async def _take(picture: Picture) -> Path:
    with (
        tempfile.TemporaryDirectory(prefix="dflash-demo-") as folder,
        DemoHost(Path(folder), speed=picture.speed) as host,
    ):
        engine = Engine(NAME, host.target, operator="ops1", origin="jump (pts/3)")
        app = ConsoleApp(engine)
        watching = asyncio.create_task(engine.run())
        try:
            async with app.run_test(size=picture.size) as pilot:
                scene = Scene(host, engine, pilot)
                await picture.act(scene)
                await scene.settle()
                svg = app.export_screenshot(title=f"dflash-console: {picture.title}")
        finally:
            watching.cancel()
            await asyncio.wait([watching])
    path = HERE / f"{picture.name}.svg"
    path.write_text(_self_contained(svg), encoding="utf-8")
    return path


def _self_contained(svg: str) -> str:
    return re.sub(r"font-family:\s*Fira Code, monospace", f"font-family: {_FONTS}", _FONT_FACES.sub("", svg))


def main() -> None:
    os.environ |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    os.environ.pop("NO_COLOR", None)
    wanted = sys.argv[1:]
    for picture in PICTURES:
        if not wanted or picture.name in wanted:
            sys.stdout.write(f"{asyncio.run(take(picture))}\n")


if __name__ == "__main__":
    main()
