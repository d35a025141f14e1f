"""A ledger that can't be written, on a disk that is full or read-only, or a file of somebody else: it is read alone.

SQLite reads a file in WAL mode only with a `-shm` file beside it, which it can't make there either. Without one the
file is read as one that nobody changes: whoever could write would have that file.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

_ERRORS = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT})
_CODES = frozenset(
    {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM}
)

_LEAST_BYTES = 64 * 1024
"""Of a `-shm` file and the first pages of a `-wal` file."""


def is_meant(error: Exception) -> bool:
    """Whether an error says that the file can't be written, as opposed to one that is locked, or is none of ours."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _CODES
    return isinstance(error, OSError) and error.errno in _ERRORS


def cause(path: Path, error: Exception) -> str:
    """Return why it can't be written, as the disk tells: SQLite says only that it could not open or write something."""
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        disk = None
    if disk is not None and is_meant(error):
        if disk.f_flag & os.ST_RDONLY:
            return os.strerror(errno.EROFS)
        if disk.f_bavail * disk.f_frsize < _LEAST_BYTES:
            return os.strerror(errno.ENOSPC)
    return getattr(error, "strerror", None) or str(error)


def reading(path: Path, version: int) -> tuple[sqlite3.Connection, str] | None:
    """Return a connection that only reads, and what is lacking there, to be added to why; None where it can't be read,
    or is of another version: it can't be brought up to date."""
    for way in ("mode=ro", "mode=ro&immutable=1"):
        try:
            connection = sqlite3.connect(f"file:{quote(str(path))}?{way}", uri=True, isolation_level=None)
        except sqlite3.Error:
            continue
        try:
            connection.row_factory = sqlite3.Row
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.execute("SELECT count(*) FROM counter").fetchone()
        except sqlite3.Error:
            connection.close()
            continue
        if found == version:
            return connection, _lacking(path) if "immutable" in way else ""
        connection.close()
        return None
    return None


def _lacking(path: Path) -> str:
    """The newest rows stand in the `-wal` file until they are taken over; it can't be read without the `-shm` file."""
    wal = path.with_name(f"{path.name}-wal")
    try:
        return f"; its newest rows are in {wal.name}, which can't be read there" if wal.stat().st_size else ""
    except OSError:
        return ""
