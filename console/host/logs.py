"""The logs on a host that a target's template could have made, the newest first."""

from __future__ import annotations

import glob
import os
import stat
from typing import Any, Dict, List

from . import naming

_MOST_FILES = 200
_MOST_LOOKED_AT = 5000


def listed(operation: Dict[str, Any]) -> Dict[str, Any]:
    """Answer a LogFiles: path, size and time of the last write of each, and how many there are in all."""
    found: List[Dict[str, Any]] = []
    for count, path in enumerate(glob.iglob(naming.log_glob(str(operation["template"])))):
        if count >= _MOST_LOOKED_AT:
            break
        try:
            status = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            found.append({"path": path, "size": status.st_size, "mtime": status.st_mtime})
    found.sort(key=lambda file: (-file["mtime"], file["path"]))
    return {"files": found[:_MOST_FILES], "total": len(found)}
