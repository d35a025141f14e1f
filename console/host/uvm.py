"""Who holds /dev/nvidia-uvm, as every process with a CUDA context does; remembered, since asking reads all descriptors.

Reading only. Agent and keeper use it.
"""

from __future__ import annotations

from typing import Dict, Set, Tuple

from . import procfs

Key = Tuple[int, int]


class Holders:
    """Once open it stays open: only those without are asked again."""

    def __init__(self) -> None:
        self._known: Dict[Key, bool] = {}

    def among(self, stats: procfs.Table, again: bool) -> Set[int]:
        """Return the holders. `again`: ask those that had it not open before; new processes are asked in any case."""
        known, self._known = self._known, {}
        for stat in stats.values():
            key = (stat.pid, stat.start)
            held = known.get(key)
            self._known[key] = procfs.holds_uvm(stat.pid) if held is None or (again and not held) else held
        return {pid for (pid, _), held in self._known.items() if held}
