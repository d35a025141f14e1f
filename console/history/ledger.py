"""The ledger's file: SQLite on the console's side, one row a run, shared by every console of this user.

Every use opens it, does one transaction and closes it again: a console that lives for weeks holds no lock, and a file
that is replaced or mended is found at once. Blocking; callers run it in a thread. Errors come out as LedgerError.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from console.configfile import APP
from console.history import schema, unwritable
from console.history.entry import LOG_ONLY, Entry
from console.history.samples import Curves, packed, unpacked
from console.history.usual import Outlook, Timing, kinds
from console.model import PastRun, Settings, Stage

_MAKING = threading.Lock()
BUSY_S = 5.0
"""Another console's transaction takes milliseconds; a disk that stalls takes longer."""
KEEP_RUNS = 2000
"""A place and target keeps this many, the newest: years of restarts."""
TARGET_SAMPLE_BYTES = 16 * 1024 * 1024
"""Curves of a target: a run's take 20 to 100 KB."""
SAMPLE_BYTES = 64 * 1024 * 1024
"""Curves of all targets."""
_MOST_SETTINGS_BYTES = 256 * 1024
_READ = 200  # rows that an outlook looks at: 20 launches of each kind are among them

_COLUMNS = Entry.__struct_fields__
# What one console observed is not taken back by another that did not watch.
_OBSERVED = frozenset(
    {
        "stepping_s", "launch_s", "first_step_wall", "first_step", "last_step", "total_steps", "cache", "steady_tok_s",
        "steady_mad", "steady_n", "scope", "last_loss", "loss_state", "checkpoint_step", "queue_empty_pct",
        "queue_full_pct", "log_size",
    }
)  # fmt: skip
_OWN = frozenset({"seq", "annotation"})
"""Not what a row says of itself."""
# How it ended is better known to a console that read the log than to one that only has the record.
_JUDGED = frozenset({"outcome", "failed_stage", "reason", "detail"})
_FLAGS = frozenset({"stepped", "is_judged"})


class LedgerError(Exception):
    """The ledger can't be used; says why."""


def default_path() -> Path:
    return platformdirs.user_state_path(APP) / "ledger.sqlite3"


class NotWritten(LedgerError):
    """What was to be noted can't be: the past can still be read."""


class Ledger:
    """An open ledger, for the length of one transaction or a few."""

    def __init__(self, connection: sqlite3.Connection, path: Path, unwritable: str = "") -> None:
        self._connection, self._path = connection, path
        self.unwritable = unwritable
        """Why nothing can be written, where that is known."""
        self.has_written = False

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Make one transaction of the block. Raises: NotWritten."""
        if self.unwritable:
            raise NotWritten(self.unwritable)
        try:
            with _transaction(self._connection):
                yield
        except sqlite3.Error as exc:
            if not unwritable.is_meant(exc):
                raise
            self.unwritable = f"{self._path}: {exc}"
            raise NotWritten(self.unwritable) from exc
        self.has_written = True

    def record(
        self, place: str, target: str, entries: Sequence[Entry], curves: Mapping[str, Curves] | None = None
    ) -> None:
        """Write rows anew or over what is known of these runs; what is over stays over. `curves`: by run id."""
        where = {"place": place, "target": target}
        with self._writing():
            for entry in entries:
                self._write({**where, **_row(entry)})
            for run, more in (curves or {}).items():
                self._connection.execute(
                    _PUT_SAMPLES, {**where, "id": run, "data": packed(self._curves(run, where, more))}
                )
            self._connection.execute(_SWEEP, {**where, "keep": KEEP_RUNS})
            if curves:
                self._bound_samples(where)

    def replace(self, place: str, target: str, entries: Sequence[Entry], curves: Mapping[str, Curves]) -> None:
        """Write rows of logs and their curves over those of before: a log was read anew, wholly."""
        where = {"place": place, "target": target}
        with self._writing():
            for entry in entries:
                self._connection.execute(_DROP_SAMPLES, {**where, "id": entry.id})
        self.record(place, target, entries, curves)

    def _write(self, row: dict[str, Any]) -> None:
        seq = self._connection.execute("SELECT seq FROM counter").fetchone()[0] + 1
        if self._connection.execute(_UPSERT, {**row, "seq": seq}).rowcount:
            self._connection.execute("UPDATE counter SET seq = ?", (seq,))

    def annotate(self, place: str, target: str, run: str, text: str) -> bool:
        """Put the operator's note on a run, in the place of an earlier one; False where there is no such run."""
        with self._writing():
            seq = self._connection.execute("SELECT seq FROM counter").fetchone()[0] + 1
            written = self._connection.execute(_ANNOTATE, (_storable(text), seq, place, target, run)).rowcount
            if written:
                self._connection.execute("UPDATE counter SET seq = ?", (seq,))
        return bool(written)

    # -- samples ------------------------------------------------------------------------------------------------------

    def curves(self, place: str, target: str, run: str) -> Curves:
        """Return what is kept of a run's curves; nothing where its samples had to make room."""
        return self._curves(run, {"place": place, "target": target}, Curves())

    def _curves(self, run: str, where: Mapping[str, str], more: Curves) -> Curves:
        row = self._connection.execute(_GET_SAMPLES, {**where, "id": run}).fetchone()
        return unpacked(row["data"]).with_(more) if row is not None else more

    def _bound_samples(self, where: Mapping[str, str]) -> None:
        """Let the oldest runs' samples go, first those of this target, then of all; the rows stay."""
        for bound, condition in (
            (TARGET_SAMPLE_BYTES, "WHERE samples.place = :place AND samples.target = :target"),
            (SAMPLE_BYTES, ""),
        ):
            self._connection.execute(_BOUND.format(condition=condition), {**where, "bound": bound})
        self._connection.execute(_ORPHANS)

    # -- reading ------------------------------------------------------------------------------------------------------

    def outlook(self, place: str, target: str, *, spoken_of: str | None = None) -> Outlook:
        """Return what past launches say of the run that is spoken of, and of the next one."""
        found = self._connection.execute(
            "SELECT * FROM runs WHERE place = ? AND target = ? ORDER BY accepted_wall DESC LIMIT ?",
            (place, target, _READ),
        ).fetchall()
        others = [row for row in found if row["id"] != spoken_of]
        current = next((row for row in found if row["id"] == spoken_of), None)
        earlier = [row for row in others if current is None or row["accepted_wall"] <= current["accepted_wall"]]
        return Outlook(
            current=kinds([_timing(row) for row in others]),
            following=kinds([_timing(row) for row in found]),
            before=next((_past(row) for row in earlier if _is_good(row)), None),
            newest=next((_past(row) for row in found if _is_good(row)), None),
        )

    def past(self, place: str, target: str, run: str) -> PastRun | None:
        """Return the newest run of this id or name, with its settings."""
        row = self._find(place, target, run)
        return _past(row) if row is not None else None

    def entry(self, place: str, target: str, run: str) -> Entry | None:
        """Return the newest run of this id or name, whole."""
        row = self._find(place, target, run)
        return _entry(row) if row is not None else None

    def _find(self, place: str, target: str, run: str) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self._connection.execute(
            "SELECT * FROM runs WHERE place = ? AND target = ? AND (id = ? OR name = ?)"
            " ORDER BY id = ? DESC, accepted_wall DESC LIMIT 1",
            (place, target, run, run, run),
        ).fetchone()
        return found

    def entries(self, place: str, target: str, limit: int = 100, since: int = 0) -> list[Entry]:
        """Return the newest runs, newest first; with `since` only those that have changed after that seq."""
        rows = self._connection.execute(
            "SELECT * FROM runs WHERE place = ? AND target = ? AND seq > ? ORDER BY accepted_wall DESC LIMIT ?",
            (place, target, since, limit),
        )
        return [_entry(row) for row in rows]

    def place_of(self, target: str) -> str | None:
        """Return where a target of this name was last heard of; None where nothing is known of it."""
        row = self._connection.execute(
            "SELECT place FROM runs WHERE target = ? ORDER BY seq DESC LIMIT 1", (target,)
        ).fetchone()
        return row["place"] if row is not None else None


@contextmanager
def opened(path: Path) -> Iterator[Ledger]:
    """Open the ledger, made and migrated where that is due; to be read alone where it can't be written.

    Raises: LedgerError, also for what the block does.
    """
    connection, why = _connected(path)
    try:
        yield Ledger(connection, path, why)
    except (sqlite3.Error, ValueError) as exc:
        raise LedgerError(f"{path}: {exc}") from exc
    finally:
        connection.close()


def _connected(path: Path) -> tuple[sqlite3.Connection, str]:
    """Return a connection, and why it can only read, if that is so. Raises: LedgerError."""
    try:
        return _writable(path), ""
    except schema.Newer as exc:
        raise LedgerError(f"{path}: {exc}") from exc
    except (OSError, sqlite3.Error, ValueError) as exc:
        why = f"{path}: {unwritable.cause(path, exc)}"
        found = unwritable.reading(path, schema.VERSION) if unwritable.is_meant(exc) else None
        if found is None:
            raise LedgerError(why) from exc
        connection, lacking = found
        return connection, f"{why}{lacking}"


def _writable(path: Path) -> sqlite3.Connection:
    _make(path)
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        _use_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")  # with WAL: a crash loses the newest rows, never the file
        schema.migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _make(path: Path) -> None:
    """Make the file 0600 in a 0700 directory before SQLite does; -wal and -shm get the file's mode from SQLite.

    A file that is there is not opened, and no other thread passes meanwhile: closing a file takes away the locks on it
    that SQLite holds for another thread of this process.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _MAKING:
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
            if status.st_uid == os.geteuid() and status.st_mode & 0o077:
                path.chmod(0o600)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Where several consoles are the first at once, SQLite answers some that it is locked, without any waiting."""
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
        time.sleep(0.01)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite has taken it back itself where the disk was full
            connection.execute("ROLLBACK")
        raise


# -- rows -------------------------------------------------------------------------------------------------------------


def _upsert() -> str:
    names = ("place", "target", *_COLUMNS)
    sets: list[tuple[str, str]] = []
    for name in _COLUMNS:
        if name == "id" or name in _OWN:
            continue
        if name in _OBSERVED:
            sets.append((name, f"coalesce(excluded.{name}, {name})"))
        elif name in _FLAGS:
            sets.append((name, f"max(excluded.{name}, {name})"))
        elif name in _JUDGED:
            sets.append((name, f"iif(excluded.is_judged >= is_judged, excluded.{name}, {name})"))
        elif name == "peaks":
            sets.append((name, "iif(excluded.peaks = '{}', peaks, excluded.peaks)"))
        else:
            sets.append((name, f"excluded.{name}"))
    values = ", ".join(f":{name}" for name in names)
    return (
        f"INSERT INTO runs ({', '.join(names)}) VALUES ({values})"
        f" ON CONFLICT (place, target, id) DO UPDATE SET seq = excluded.seq,"
        f" {', '.join(f'{name} = {value}' for name, value in sets)}"
        # A console that lags behind must not bring a run back to life, and what says nothing new is no change.
        f" WHERE excluded.is_over >= is_over AND ({' OR '.join(f'{value} IS NOT {name}' for name, value in sets)})"
    )


_UPSERT = _upsert()
_SWEEP = (
    "DELETE FROM runs WHERE place = :place AND target = :target AND accepted_wall < (SELECT accepted_wall FROM runs"
    " WHERE place = :place AND target = :target ORDER BY accepted_wall DESC LIMIT 1 OFFSET :keep - 1)"
)
_ANNOTATE = "UPDATE runs SET annotation = ?, seq = ? WHERE place = ? AND target = ? AND id = ?"
_GET_SAMPLES = "SELECT data FROM samples WHERE place = :place AND target = :target AND id = :id"
_DROP_SAMPLES = "DELETE FROM samples WHERE place = :place AND target = :target AND id = :id"
_PUT_SAMPLES = (
    "INSERT INTO samples (place, target, id, data) VALUES (:place, :target, :id, :data)"
    " ON CONFLICT (place, target, id) DO UPDATE SET data = excluded.data"
)
# The sum over the newer runs, itself included, decides whether a run's samples still have room.
_BOUND = (
    "DELETE FROM samples WHERE rowid IN (SELECT row FROM (SELECT samples.rowid AS row, sum(length(data)) OVER"
    " (ORDER BY runs.accepted_wall DESC, samples.rowid DESC) AS so_far FROM samples JOIN runs USING"
    " (place, target, id) {condition}) WHERE so_far > :bound)"
)
_ORPHANS = (
    "DELETE FROM samples WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.place = samples.place"
    " AND runs.target = samples.target AND runs.id = samples.id)"
)


def _row(entry: Entry) -> dict[str, Any]:
    row = {name: getattr(entry, name) for name in _COLUMNS}
    settings = msgspec.json.encode(entry.settings)
    if len(settings) > _MOST_SETTINGS_BYTES:
        settings = msgspec.json.encode(Settings())
    texts = {"settings": settings.decode(), "peaks": msgspec.json.encode(entry.peaks).decode()}
    return {name: _storable(value) for name, value in row.items() if name not in texts} | texts


def _storable(value: Any) -> Any:
    """SQLite refuses lone surrogates, which a file name that isn't UTF-8 can bring in."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _entry(row: Mapping[str, Any]) -> Entry:
    fields = {name: row[name] for name in _COLUMNS}
    fields["settings"] = _settings(row)
    fields["peaks"] = msgspec.json.decode(row["peaks"], type=dict[str, int])
    return Entry(**(fields | {flag: bool(row[flag]) for flag in (*_FLAGS, "is_over")}))


def _settings(row: Mapping[str, Any]) -> Settings:
    return msgspec.json.decode(row["settings"], type=Settings)


def _is_good(row: Mapping[str, Any]) -> bool:
    """Whether its settings led to steps, and are known: of a log alone they aren't."""
    return bool(row["stepped"]) and row["outcome"] != LOG_ONLY


def _past(row: Mapping[str, Any]) -> PastRun:
    return PastRun(id=row["id"], name=row["name"], settings=_settings(row), stepped=bool(row["stepped"]))


def _timing(row: Mapping[str, Any]) -> Timing:
    columns = {stage: row[f"{stage}_s"] for stage in Stage}
    took = {stage: seconds for stage, seconds in columns.items() if seconds is not None}
    return Timing(id=row["id"], cache=row["cache"], stages=took, stepped=bool(row["stepped"]))
