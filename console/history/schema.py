"""The tables of the ledger, as steps from one version of the file to the next. Nothing is read or written here.

A step is never edited once it has been shipped: a new one is added. The version stands in SQLite's `user_version`.
"""

from __future__ import annotations

import sqlite3

_RUNS = """
CREATE TABLE runs (
    place TEXT NOT NULL,        -- where the host keeps its records: node and state directory
    target TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    operator TEXT NOT NULL,
    origin TEXT NOT NULL,
    note TEXT NOT NULL,
    boot TEXT NOT NULL,
    accepted_wall REAL NOT NULL,  -- the host's clock, Unix seconds, as are all *_wall
    ended_wall REAL,
    state TEXT NOT NULL,
    is_over INTEGER NOT NULL,
    cache TEXT,                 -- cleared | kept; NULL where that isn't known (yet)
    killing_s REAL,
    cache_s REAL,
    spawned_s REAL,
    cuda_s REAL,
    stepping_s REAL,
    stepped INTEGER NOT NULL,   -- 1: steps were seen
    launch_s REAL,
    first_step_wall REAL,
    last_step INTEGER,
    is_judged INTEGER NOT NULL,  -- 1: outcome, stage, reason and detail are of a console that read the log
    outcome TEXT NOT NULL,      -- launching | running | failed | ended | finished | stopped | interrupted
    failed_stage TEXT,
    reason TEXT,
    detail TEXT NOT NULL,
    exit_code INTEGER,
    exit_signal INTEGER,
    ended_by TEXT,
    lived_s REAL,
    settings TEXT NOT NULL,     -- JSON: argv, cwd, env, unset, scripts
    log_path TEXT,
    replaced_id TEXT,
    replaced_name TEXT,
    PRIMARY KEY (place, target, id)
) WITHOUT ROWID
"""
_BY_TIME = "CREATE INDEX runs_by_time ON runs (place, target, accepted_wall)"

# What a run achieved, and an order of changes for those who ask what is new.
_ACHIEVED = tuple(
    f"ALTER TABLE runs ADD COLUMN {column}"
    for column in (
        "seq INTEGER NOT NULL DEFAULT 0",  # of the last change of this row: greater than that of any change before
        "annotation TEXT",  # the operator's own note, beside the one that the run was asked for with
        "first_step INTEGER",
        "total_steps INTEGER",
        "steady_tok_s REAL",
        "steady_mad REAL",
        "steady_n INTEGER",
        "scope TEXT",  # global | per_device | rank | derived
        "last_loss REAL",
        "loss_state TEXT",  # ok | nan | inf; NULL: not known
        "checkpoint_step INTEGER",
        "queue_empty_pct REAL",
        "queue_full_pct REAL",
        "peaks TEXT NOT NULL DEFAULT '{}'",  # JSON: GPU index -> most bytes used
        "log_size INTEGER",  # of a run that is known by its log alone, when it was read
        "log_mtime REAL",
    )
)
_SAMPLES = """
CREATE TABLE samples (
    place TEXT NOT NULL,
    target TEXT NOT NULL,
    id TEXT NOT NULL,
    data BLOB NOT NULL,         -- history.samples says what is in it
    PRIMARY KEY (place, target, id)
)
"""
_COUNTER = "CREATE TABLE counter (seq INTEGER NOT NULL)"
_COUNT_OLD = (
    "UPDATE runs SET seq = (SELECT count(*) FROM runs AS earlier WHERE earlier.accepted_wall <= runs.accepted_wall)"
)
_COUNTER_START = "INSERT INTO counter SELECT count(*) FROM runs"

STEPS: tuple[tuple[str, ...], ...] = (
    (_RUNS, _BY_TIME),
    (*_ACHIEVED, _SAMPLES, _COUNTER, _COUNT_OLD, _COUNTER_START),
)
"""What leads from version N to N + 1, at index N."""
VERSION = len(STEPS)


class Newer(Exception):
    """The file was written by a newer console."""


def migrate(connection: sqlite3.Connection, steps: tuple[tuple[str, ...], ...] = STEPS) -> None:
    """Bring the file to the newest version, wholly or not at all; several consoles may try at once.

    Raises: Newer; sqlite3.Error.
    """
    if _version(connection) == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)  # another console may have been first
        if version > len(steps):
            raise Newer(f"version {version} of the ledger, this console knows {len(steps)}: update it")
        for step in steps[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
