"""`diagnose`: one new file of 0600 that is told, and a run that goes on as if nobody had looked."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import platformdirs
import pytest

from tests.headless.running import Console


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(platformdirs, "user_state_path", lambda app: tmp_path / "state" / app)
    return tmp_path / "state" / "dflash-console"


def test_the_file_is_new_private_and_told(console: Console, state_home: Path) -> None:
    run = console.restart("--json").json

    done = console("diagnose")

    found = re.fullmatch(rf"OK diagnosed {run['run']} id={run['id']} size=\S+ file=(\S+)\n", done.out)
    assert found, done
    path = Path(found[1])
    assert path.parent == state_home
    assert re.fullmatch(rf"{run['run']}-\d{{8}}-\d{{6}}\.diagnosis\.txt", path.name)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert text.startswith(f"dflash-console diagnosis of ct-demo: {run['run']}\n")
    assert f"pid {run['pid']}" in text
    assert "\nverdict   stepping\n" in text
    assert "== GPUs ==" in text


def test_the_run_goes_on(console: Console, tmp_path: Path) -> None:
    run = console.stepping()

    console("diagnose", "-o", str(tmp_path / "x.txt"))

    assert console("status", "--json").json["pid"] == run["pid"]


def test_json_names_file_and_size(console: Console, tmp_path: Path) -> None:
    console.stepping()
    path = tmp_path / "x.txt"

    answer = console("diagnose", "-o", str(path), "--json").json

    assert (answer["outcome"], answer["path"], answer["exit_code"]) == ("diagnosed", str(path), 0)
    assert answer["size_bytes"] == path.stat().st_size
    assert {"target", "run", "id", "at", "data_age_s"} <= set(answer)


def test_no_file_is_ever_overwritten(console: Console, tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("mine")

    done = console("diagnose", "-o", str(path))

    assert done.code == 2
    assert "was left as it is" in done.err
    assert path.read_text() == "mine"


def test_a_place_that_cannot_be_written_is_named(console: Console, tmp_path: Path) -> None:
    console.stepping()

    done = console("diagnose", "-o", str(tmp_path / "nowhere" / "x.txt"), "--json")

    assert (done.code, done.json["reason"]) == (2, "not_saved")


def test_where_nothing_runs_nothing_is_written(console: Console, state_home: Path) -> None:
    console.free()

    done = console("diagnose")

    assert done.code == 5
    assert done.out.startswith("NOTHING nothing_runs: ")
    assert not list(state_home.glob("*.txt"))
