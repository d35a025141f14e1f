"""What a keeper needs only once its run lives, or fails: imported while the old run dies, or behind the spawn.

Imported before, it would hold up every restart by 50 ms. Imported when needed it might be missing: Python may be
upgraded or removed under a keeper that is days old. Only keeper.py imports this module.
"""

from __future__ import annotations

import functools  # noqa: F401
import linecache  # noqa: F401
import string  # noqa: F401
import threading  # noqa: F401
import traceback  # noqa: F401

from . import gpusource, prune, vigil

__all__ = ["gpusource", "prune", "vigil"]
