"""The ledger's file: rows, who may say what of a run, several consoles at once, and files that can't be used."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from console.history import ledger, schema
from console.history.entry import CLEARED, KEPT, LOG_ONLY, Entry, Observed, cache_kind, entry, is_launch
from console.model import Script, Settings, Stage
from console.protocol import HostStage, RunRecord
from tests.history.records import PLACE, TARGET, ended, record
from tests.host.mounts import mount, with_own_mounts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger.sqlite3"


def keep(path: Path, *entries: Entry, target: str = TARGET, place: str = PLACE) -> None:
    with ledger.opened(path) as book:
        book.record(place, target, entries)


def rows(path: Path, target: str = TARGET) -> list[Entry]:
    with ledger.opened(path) as book:
        return book.entries(PLACE, target)


# -- what a record says -----------------------------------------------------------------------------------------------


def test_stages_of_a_record_are_timed_as_the_rail_times_them() -> None:
    row = entry(record(5))

    assert row.killing_s == 12.0
    assert row.cache_s == pytest.approx(0.01)
    assert row.spawned_s == pytest.approx(0.8)
    assert row.cuda_s == pytest.approx(112.0)
    assert (row.stepping_s, row.stepped, row.cache) == (None, False, CLEARED)


@pytest.mark.parametrize(
    ("stage", "asked", "kind"),
    [
        (HostStage(state="done"), False, CLEARED),
        (HostStage(state="skipped", why="kept (c)"), True, KEPT),
        (HostStage(state="skipped", why="no cache configured"), True, KEPT),
        (HostStage(state="skipped", why="nothing to clear"), False, CLEARED),
        (None, True, KEPT),
        (None, False, CLEARED),
        (HostStage(state="skipped", why="kept (c)"), None, KEPT),
        (HostStage(state="skipped", why="nothing to clear"), None, CLEARED),
        (None, None, None),
    ],
)
def test_kind_of_a_launch_is_whether_it_began_without_a_cache(
    stage: HostStage | None, asked: bool | None, kind: str | None
) -> None:
    stages = {"cache": stage} if stage is not None else {}

    assert cache_kind(RunRecord(id="r", stages=stages, keep_cache=asked)) == kind


def test_stops_and_refused_requests_are_no_launches() -> None:
    assert is_launch(record(1))
    assert not is_launch(record(1, action="stop"))
    assert not is_launch(record(1, state="refused"))
    assert not is_launch(record(1, state=""))


# -- rows -------------------------------------------------------------------------------------------------------------


def test_a_row_comes_back_as_it_was_written(path: Path) -> None:
    seen = Observed(stepped=True, stepping_s=96.0, launch_s=221.0, last_step=9311, outcome="ended", reason="nan_loss")
    scripts = {"/root/run.sh": Script(sha256="9c02", mode=0o755, mtime=5.0)}
    row = entry(ended(5, scripts=scripts, unset=("LANG",), note="batch 8"), seen)

    keep(path, row)

    assert rows(path) == [replace(row, seq=1)]


def test_file_and_folder_are_for_their_owner_alone(path: Path) -> None:
    keep(path, entry(record(1)))

    with ledger.opened(path) as book:
        book.entries(PLACE, TARGET)
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}

    assert set(modes.values()) == {0o600}, modes
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_others_could_read_is_closed_to_them(path: Path) -> None:
    keep(path, entry(record(1)))
    path.chmod(0o644)

    keep(path, entry(record(2)))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_was_observed_stays_when_somebody_writes_who_did_not_watch(path: Path) -> None:
    keep(path, entry(record(5), Observed(stepped=True, stepping_s=96.0, launch_s=221.0, last_step=300)))

    keep(path, entry(record(5)))

    row = rows(path)[0]
    assert (row.stepped, row.stepping_s, row.launch_s, row.last_step) == (True, 96.0, 221.0, 300)


def test_reason_of_a_console_that_read_the_log_stays(path: Path) -> None:
    judged = Observed(outcome="failed", failed_stage="cuda", reason="cuda_oom", detail="out of memory")
    keep(path, entry(ended(5), judged))

    keep(path, entry(ended(5, reason="exit_status", detail="status 1")))

    row = rows(path)[0]
    assert (row.outcome, row.failed_stage, row.reason, row.detail) == ("failed", "cuda", "cuda_oom", "out of memory")


def test_a_later_judgement_replaces_an_earlier_one(path: Path) -> None:
    keep(path, entry(ended(5), Observed(outcome="failed", reason="exit_status")))

    keep(path, entry(ended(5), Observed(outcome="failed", reason="missing_module")))

    assert rows(path)[0].reason == "missing_module"


def test_a_console_that_lags_brings_no_run_back_to_life(path: Path) -> None:
    keep(path, entry(ended(5, code=126)))

    keep(path, entry(record(5)))

    row = rows(path)[0]
    assert (row.is_over, row.exit_code, row.outcome) == (True, 126, "ended")


def test_targets_and_places_are_kept_apart(path: Path) -> None:
    keep(path, entry(record(1)))
    keep(path, entry(record(2)), target="ct201")
    keep(path, entry(record(3)), place="other:/root")

    assert [row.id for row in rows(path)] == ["r-1"]


def test_only_the_newest_runs_of_a_target_are_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "KEEP_RUNS", 3)
    keep(path, entry(record(9)), target="ct201")

    keep(path, *(entry(record(number)) for number in range(1, 8)))

    assert [row.id for row in rows(path)] == ["r-7", "r-6", "r-5"]
    assert [row.id for row in rows(path, "ct201")] == ["r-9"]


def test_settings_beyond_all_measure_are_left_out(path: Path) -> None:
    keep(path, entry(record(1, env={"HUGE": "x" * 1_000_000})))

    assert rows(path)[0].settings.env == {}
    assert path.stat().st_size < 500_000


def test_past_run_is_found_by_id_and_the_newest_one_by_name(path: Path) -> None:
    keep(path, entry(record(1, name="probe")), entry(record(2, name="probe", env={"SPLIT": "1"})))

    with ledger.opened(path) as book:
        by_name, by_id, none = (book.past(PLACE, TARGET, which) for which in ("probe", "r-1", "nosuch"))

    assert by_name is not None
    assert (by_name.id, by_name.settings.env) == ("r-2", {"SPLIT": "1"})
    assert by_id is not None
    assert by_id.id == "r-1"
    assert none is None


# -- the outlook ------------------------------------------------------------------------------------------------------


def stepped(stepping_s: float) -> Observed:
    return Observed(stepped=True, stepping_s=stepping_s)


def test_good_run_is_the_last_before_the_one_that_is_spoken_of(path: Path) -> None:
    keep(
        path,
        entry(record(3), stepped(90.0)),
        entry(ended(4)),
        entry(record(5), stepped(96.0)),
        entry(record(6), stepped(99.0)),
    )

    with ledger.opened(path) as book:
        now, back = (book.outlook(PLACE, TARGET, spoken_of=run) for run in ("r-6", "r-4"))

    assert now.before is not None
    assert now.newest is not None
    assert (now.before.name, now.newest.name) == ("slammed5", "slammed6")
    assert back.before is not None
    assert back.before.name == "slammed3"


def test_a_run_of_which_only_the_log_is_known_is_none_to_go_back_to(path: Path) -> None:
    log = replace(entry(record(5), stepped(96.0)), outcome=LOG_ONLY, settings=Settings())
    keep(path, entry(record(4), stepped(90.0)), log, entry(ended(6)))

    with ledger.opened(path) as book:
        outlook = book.outlook(PLACE, TARGET, spoken_of="r-6")

    assert outlook.before is not None
    assert outlook.newest is not None
    assert (outlook.before.name, outlook.newest.name) == ("slammed4", "slammed4")


def test_the_run_that_is_spoken_of_is_no_past_launch(path: Path) -> None:
    keep(path, entry(record(4), stepped(90.0)), entry(record(5), stepped(500.0)))

    with ledger.opened(path) as book:
        outlook = book.outlook(PLACE, TARGET, spoken_of="r-5")

    assert outlook.current.cleared.usual_s[Stage.STEPPING] == 90.0
    assert outlook.current.cleared.launches == 1
    assert outlook.following.cleared.launches == 2


# -- the file ---------------------------------------------------------------------------------------------------------

_WRITER = """
import sys
from pathlib import Path
from console.history import ledger
from console.history.entry import entry
from tests.history.records import PLACE, TARGET, record
ledger.BUSY_S = 60.0  # a busy disk may keep one of them waiting for long
first, path = int(sys.argv[1]), Path(sys.argv[2])
for number in range(first, first + 25):
    with ledger.opened(path) as book:
        book.record(PLACE, TARGET, [entry(record(number))])
        book.outlook(PLACE, TARGET)
"""


def test_several_consoles_write_into_one_file_that_none_of_them_has_made(path: Path) -> None:
    command = [sys.executable, "-c", _WRITER]
    writers = [
        subprocess.Popen([*command, str(first), str(path)], stderr=subprocess.PIPE, text=True)
        for first in (0, 25, 50, 75)
    ]

    complaints = [writer.communicate(timeout=120)[1] for writer in writers]

    assert complaints == [""] * 4
    assert len(rows(path)) == 100


def test_migration_happens_once_whoever_comes_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "BUSY_S", 60.0)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: keep(path, entry(record(number))), range(8)))

    assert len(found) == 8
    assert len(rows(path)) == 8


def test_console_waits_for_another_that_is_just_making_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.mkdir()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr("console.history.ledger.time.sleep", lambda seconds: other.execute("COMMIT"))

        keep(path, entry(record(1)))

    assert len(rows(path)) == 1


@given(data=st.data(), steps=st.integers(1, 5))
def test_migrations_lead_from_every_version_to_the_newest_and_lose_nothing(data: st.DataObject, steps: int) -> None:
    all_steps = (("CREATE TABLE t (c0)",), *((f"ALTER TABLE t ADD COLUMN c{n}",) for n in range(1, steps)))
    start = data.draw(st.integers(1, steps))
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        schema.migrate(connection, all_steps[:start])
        connection.execute("INSERT INTO t (c0) VALUES (7)")

        schema.migrate(connection, all_steps)

        assert connection.execute("SELECT c0 FROM t").fetchall() == [(7,)]
        assert len(connection.execute("PRAGMA table_info(t)").fetchall()) == steps
        assert connection.execute("PRAGMA user_version").fetchone() == (steps,)
    finally:
        connection.close()


def test_migration_that_fails_leaves_the_version_before() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        schema.migrate(connection, (("CREATE TABLE t (c0)",),))

        with pytest.raises(sqlite3.OperationalError):
            schema.migrate(connection, (("",), ("ALTER TABLE t ADD COLUMN c1", "NO SUCH STATEMENT")))

        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert len(connection.execute("PRAGMA table_info(t)").fetchall()) == 1
    finally:
        connection.close()


def test_file_of_a_newer_console_is_refused_and_left_as_it_is(path: Path) -> None:
    keep(path, entry(record(1)))
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.close()

    with pytest.raises(ledger.LedgerError, match=f"version {schema.VERSION + 1}"), ledger.opened(path):
        pass

    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM runs").fetchone() == (1,)
    connection.close()


def test_what_is_no_database_is_said_and_not_written_over(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database, but somebody's notes " * 100)
    before = path.read_bytes()

    with pytest.raises(ledger.LedgerError, match=r"ledger\.sqlite3: file is not a database"):
        keep(path, entry(record(1)))

    assert path.read_bytes() == before


def test_symlink_in_place_of_the_file_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ledger.LedgerError):
        keep(path, entry(record(1)))

    assert not (tmp_path / "elsewhere").exists()


def test_folder_that_can_not_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")

    with pytest.raises(ledger.LedgerError, match=r"Not a directory|File exists"):
        keep(tmp_path / "state" / "ledger.sqlite3", entry(record(1)))


def unwritable(tmp_path: Path, cut: Callable[[Path], None]) -> dict[str, Any]:
    """Return what a ledger on a small disk of its own tells once `cut` has been done to that disk."""

    def seen() -> dict[str, Any]:
        disk = tmp_path / "disk"
        mount("tmpfs", disk, "size=600k")
        path = disk / "state" / "ledger.sqlite3"
        keep(path, entry(record(1)))
        cut(path)
        with ledger.opened(path) as book:
            told = [row.id for row in book.entries(PLACE, TARGET)]
            for _ in range(2):
                with pytest.raises(ledger.NotWritten) as refused:
                    book.record(PLACE, TARGET, [entry(record(number)) for number in range(2, 400)])
            after = [row.id for row in book.entries(PLACE, TARGET)]
        return {"told": told, "why": str(refused.value).replace(str(path), "PATH"), "after": after}

    found: dict[str, Any] = with_own_mounts(seen)
    return found


def fill(path: Path) -> None:
    with open(path.parent / "fill", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass


def fill_but_for_a_few_pages(path: Path) -> None:
    """So many that it can be opened and read."""
    fill(path)
    os.truncate(path.parent / "fill", (path.parent / "fill").stat().st_size - 56 * 1024)


def set_read_only(path: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(path.parents[1])], check=True)


def leave_newest_rows(path: Path) -> None:
    """As a console does that is killed: its row stands in the -wal file alone."""
    child = subprocess.run([sys.executable, "-c", _KILLED, str(path)], check=False)
    assert child.returncode == 7
    path.with_name(f"{path.name}-shm").unlink()
    set_read_only(path)


_KILLED = """
import os, sys
from pathlib import Path
from console.history import ledger
from console.history.entry import entry
from tests.history.records import PLACE, TARGET, record
with ledger.opened(Path(sys.argv[1])) as book:
    book.record(PLACE, TARGET, [entry(record(3))])
    os._exit(7)
"""


@pytest.mark.parametrize(
    ("cut", "why"),
    [
        (set_read_only, "PATH: Read-only file system"),
        (fill, "PATH: No space left on device"),
        (fill_but_for_a_few_pages, "PATH: database or disk is full"),
        (
            leave_newest_rows,
            "PATH: Read-only file system; its newest rows are in ledger.sqlite3-wal, which can't be read there",
        ),
    ],
)
def test_ledger_that_can_not_be_written_is_read_and_says_why(
    tmp_path: Path, cut: Callable[[Path], None], why: str
) -> None:
    seen = unwritable(tmp_path, cut)

    assert (seen["told"], seen["after"]) == (["r-1"], ["r-1"])
    assert seen["why"] == why


_AS_NOBODY = """
import os, sys
from pathlib import Path
from console.history import ledger
from console.history.entry import entry
from tests.history.records import PLACE, TARGET, record
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    with ledger.opened(Path(sys.argv[1])) as book:
        book.record(PLACE, TARGET, [entry(record(2))])
except ledger.LedgerError as error:
    print(error)
"""


@pytest.mark.skipif("os.geteuid() != 0", reason="gives up root's rights to meet a file that is not its own")
def test_file_of_somebody_else_is_said_and_left_alone() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        ours = folder / "ledger.sqlite3"
        keep(ours, entry(record(1)))
        ours.chmod(0o644)

        told = subprocess.run(
            [sys.executable, "-c", _AS_NOBODY, str(ours)], capture_output=True, text=True, timeout=120
        )

        assert f"{ours}: attempt to write a readonly database" in told.stdout, told
        assert [row.id for row in rows(ours)] == ["r-1"]
