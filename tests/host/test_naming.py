"""The next run's name and log."""

import re
from pathlib import Path

import pytest

from console.host import naming


@pytest.fixture
def template(tmp_path: Path) -> str:
    return str(tmp_path / "train_{name}.log")


def test_counting_goes_on_from_runs_and_from_logs_on_disk(tmp_path: Path, template: str) -> None:
    for name in ("train_slammed9.log", "train_slammedX.log", "train_slammed100.log.gz", "train_other50.log"):
        (tmp_path / name).touch()

    assert naming.choose("slammed{n}", template, []) == ("slammed10", str(tmp_path / "train_slammed10.log"))
    assert naming.choose("slammed{n}", template, ["slammed11", "else99"])[0] == "slammed12"


def test_the_first_run_is_number_one(template: str) -> None:
    assert naming.choose("run{n}", template, [])[0] == "run1"


def test_an_existing_log_is_never_chosen(tmp_path: Path, template: str) -> None:
    (tmp_path / "train_final.log").touch()
    (tmp_path / "train_final.2.log").symlink_to("/nowhere")

    assert naming.choose("final", template, []) == ("final", str(tmp_path / "train_final.3.log"))


def test_the_time_stamps_a_name(template: str) -> None:
    name, path = naming.choose("run-{time}", template, [])

    assert re.fullmatch(r"run-\d{8}-\d{6}", name)
    assert name in path


def test_names_with_wild_cards_are_taken_literally(tmp_path: Path) -> None:
    folder = tmp_path / "a[b]*"
    folder.mkdir()
    (folder / "x[1].log").touch()

    assert naming.choose("x[{n}]", str(folder / "{name}.log"), [])[0] == "x[2]"


def test_a_name_never_leaves_the_directory(tmp_path: Path, template: str) -> None:
    assert naming.choose("../../etc/x", template, [])[1] == str(tmp_path / "train_.._.._etc_x.log")
