"""What is said to the terminal beside the picture: its title, a full repaint. The only place that knows the driver."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from textual.app import App

from console.ui.present.words import one_line


def set_title(app: App[Any], title: str) -> None:
    """Name the pane (OSC 2). Control characters never get through."""
    _write(app, f"\x1b]2;{one_line(title)[:120]}\x1b\\")


def wipe(app: App[Any]) -> None:
    """Clear the terminal, so that the next paint is a whole one."""
    _write(app, "\x1b[2J")


def _write(app: App[Any], text: str) -> None:
    driver = app._driver  # noqa: SLF001 - Textual has no public way to write an OSC sequence of one's own
    if driver is not None and not app.is_headless:
        driver.write(text)


async def tmux_swallows_copies() -> bool:
    """Whether this runs in a tmux that drops OSC 52 (only `set-clipboard on` lets programs in panes set it)."""
    if "TMUX" not in os.environ:
        return False
    try:
        process = await asyncio.create_subprocess_exec(
            "tmux", "show-options", "-gsv", "set-clipboard",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, stdin=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        return False
    try:
        # 1 s: a local tmux answers within milliseconds; a wedged one must not hold the toast up.
        async with asyncio.timeout(1.0):
            output, _ = await process.communicate()
    except TimeoutError:
        return False
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return output.decode("utf-8", "replace").strip() not in ("", "on")
