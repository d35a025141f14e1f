"""Stage clearing cache: the caches are set aside at once and deleted behind the scenes.

`ready` makes the process that deletes while there is time, since a fork takes some. Only keeper.py imports this module.
"""

from __future__ import annotations

import os
import re
from typing import List, Optional

from . import cache, gpuwatch, transaction
from .transaction import Failed

_SHORT_SPACE_BYTES = 5 * gpuwatch.GIB


class Clearing:
    """The caches of one request."""

    def __init__(self, task: transaction.Transaction) -> None:
        self._task, self._asked, self._spec = task, task.asked, task.asked.spec
        self._journal = task.journal
        self._deleter: Optional[cache.Deleter] = None

    def ready(self) -> None:
        """Make in advance what will be needed, if it will."""
        if self._asked.action == "restart" and self._deleter is None and self._clears:
            self._deleter = cache.Deleter()

    def close(self) -> None:
        """End what was made in advance and is not needed."""
        if self._deleter is not None:
            self._deleter.close()

    def clear(self) -> None:
        """Set the caches aside and have them deleted later. Raises: Failed."""
        caches = list(self._spec.get("caches") or ())
        self._task.enter("cache")
        if not self._clears:
            self._journal.end("cache", "skipped", why="kept (c)" if caches else "no cache configured")
            return
        self._journal.begin("cache", "cache", detail=", ".join(caches))
        aside: List[cache.SetAside] = []
        leftovers = [trash for path in caches for trash in cache.left_behind(path)]
        try:
            for path in caches:
                moved = cache.set_aside(path, self._task.precious, (self._asked.cache_sizes or {}).get(path))
                if moved is not None:
                    aside.append(moved)
        except cache.CacheError as error:
            raise Failed("cache", error.reason, error.detail) from error
        finally:
            self._delete(leftovers + [each.trash for each in aside if each.trash])
        if not aside:
            self._journal.end("cache", "skipped", why="nothing to clear")
            return
        size = gpuwatch.size_text(sum(each.size_bytes for each in aside))
        more = "> " if any(each.partial for each in aside) else ""
        self._journal.end(
            "cache",
            "done",
            # In 17 cells: of a lower bound nobody needs the tenths.
            "%s%s set aside" % (more.strip(), size if not more else re.sub(r"\.\d", "", size)),
            detail="%s%s set aside, being deleted: %s" % (more, size, ", ".join(each.path for each in aside)),
        )

    def _delete(self, trashes: List[str]) -> None:
        # A rename frees no space: where it is short, the deletion must not wait for idle time.
        short = any(_free_bytes(os.path.dirname(trash)) < self._wanted_bytes() for trash in trashes)
        if trashes:
            self._deleter = self._deleter or cache.Deleter()
            self._deleter.delete(trashes, urgent=short)
        self.close()

    def _wanted_bytes(self) -> float:
        wanted_gib = (self._spec.get("preflight") or {}).get("free_gib")
        return wanted_gib * gpuwatch.GIB if wanted_gib else _SHORT_SPACE_BYTES

    @property
    def _clears(self) -> bool:
        return bool(self._spec.get("caches")) and not self._spec.get("keep_cache")


def _free_bytes(directory: str) -> int:
    try:
        found = os.statvfs(directory)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize
