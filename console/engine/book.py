"""The ledger's file from the event loop: each job in a thread of its own, with a deadline."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from console.history import ledger

T = TypeVar("T")
WORK_S = 20.0  # four times what one console may wait for another


class Book:
    """Where the ledger lies, and the way to it."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or ledger.default_path()
        self.unwritten = ""
        """Why what was to be noted was not, or could not be; empty once something was."""

    async def work(self, job: Callable[[ledger.Ledger], T], within_s: float = WORK_S) -> T:
        """Run a job on the ledger in a thread of its own: a disk that hangs may keep that, and nothing else.

        Raises: ledger.LedgerError, TimeoutError.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def deliver(result: T | None, error: BaseException | None) -> None:
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(result)  # type: ignore[arg-type]  # without an error there is a result

        def run() -> None:
            result, error = None, None
            try:
                with ledger.opened(self.path) as book:
                    try:
                        result = job(book)
                    finally:
                        if book.unwritable or book.has_written:
                            self.unwritten = book.unwritable
            except Exception as exc:  # noqa: BLE001 - the thread's root: handed to whoever waits
                error = exc
            try:
                loop.call_soon_threadsafe(deliver, result, error)
            except RuntimeError:
                pass  # the loop has ended meanwhile, nobody waits

        threading.Thread(target=run, name="ledger", daemon=True).start()
        async with asyncio.timeout(within_s):
            return await answer
