"""A ledger that an earlier console wrote: `ledger-v1.sqlite3` is such a file, kept as it was written."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from console.history import ledger, schema
from console.history.entry import Observed, entry
from console.history.samples import Curves
from console.state.digest import Digester
from console.state.steadiness import Window
from tests.history.records import PLACE, TARGET, record

OLD = Path(__file__).with_name("ledger-v1.sqlite3")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    shutil.copyfile(OLD, tmp_path / "ledger.sqlite3")
    return tmp_path / "ledger.sqlite3"


def test_the_old_file_is_one_of_the_first_version() -> None:
    connection = sqlite3.connect(f"file:{OLD}?mode=ro&immutable=1", uri=True)

    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert "seq" not in [column[1] for column in connection.execute("PRAGMA table_info(runs)")]
    connection.close()


def test_runs_of_the_first_version_are_all_there_and_say_no_more_than_they_did(path: Path) -> None:
    with ledger.opened(path) as book:
        new, failed, old = book.entries(PLACE, TARGET)

    assert (new.id, failed.id, old.id) == ("r-5", "r-4", "r-3")
    assert (new.note, new.remark, new.last_step, new.launch_s) == ("batch 8", "batch 8", 18420, 221.0)
    assert new.settings.scripts["/root/run.sh"].mode == 0o755
    assert (failed.exit_code, failed.outcome) == (126, "ended")
    assert (old.reason, old.first_step_wall, old.is_judged) == ("nan_loss", 1_800_003_210.0, True)
    assert {each.steady_tok_s for each in (new, failed, old)} == {None}
    assert new.peaks == {}
    assert new.seq > failed.seq > old.seq > 0


def test_a_migrated_file_takes_what_is_new(path: Path) -> None:
    digester = Digester()
    digester.add(3.0, 21_000.0, 5)
    curves = Curves(digests={"tok_s": digester.digest}, steady=Window(3.0, (21_000.0,)))

    with ledger.opened(path) as book:
        before = book.entries(PLACE, TARGET)[0]
        row = entry(record(5), Observed(stepped=True, steady_tok_s=21_480.0, steady_mad=190.0))
        book.record(PLACE, TARGET, [row], {"r-5": curves})
        book.annotate(PLACE, TARGET, "r-5", "split FC")

    with ledger.opened(path) as book:
        after = book.entries(PLACE, TARGET)[0]
        kept = book.curves(PLACE, TARGET, "r-5")

    assert (after.steady_tok_s, after.remark, after.last_step) == (21_480.0, "split FC", 18420)
    assert after.seq > before.seq
    assert kept == curves
    assert replace(after, seq=0).launch_s == 221.0


def test_migrating_twice_changes_nothing(path: Path) -> None:
    with ledger.opened(path) as book:
        first = book.entries(PLACE, TARGET)

    with ledger.opened(path) as book:
        again = book.entries(PLACE, TARGET)

    assert again == first
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
    connection.close()
