"""Changes to a config file that a person wrote: what was asked for, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from console import configfile, configwriter
from console.config import Gpus, Target
from console.configeditor import ConfigEntry, with_found
from console.model import LogStatus, Process
from console.reasons import ConsoleError
from tests.ui import fixtures

_FILE = """\
# ours
default_target = "ct200"

[targets.ct200]   # production
host = "10.1.2.6"
command = [
    "/root/run.sh",  # sets up the venv
]
env = { OLD = "1", KEPT = "x y" } # tuned by ops1
log = '/workspace/train_{name}.log'

[targets.other]
host = "local"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(_FILE)
    return path


def test_settings_change_and_the_rest_of_the_file_stays_as_it_was_written(file: Path) -> None:
    ConfigEntry(file, "ct200").keep_settings({"KEPT": "x y", "NEW": 'say "hi"'}, ["--batch", "8"])

    target = configfile.load(file).targets["ct200"]
    assert target.env == {"KEPT": "x y", "NEW": 'say "hi"'}
    assert target.command == ("/root/run.sh", "--batch", "8")
    now = file.read_text()
    for line in _FILE.splitlines():
        if not line.startswith(("env", "]", "    ")):
            assert line in now.splitlines()
    assert "# tuned by ops1" in now
    assert "# sets up the venv" in now


def test_an_environment_in_a_table_of_its_own_is_changed_there(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('[targets.a]\nhost = "h"\ncommand = ["/r"]\n[targets.a.env]\nA = "1" # why\nB = "2"\n')

    ConfigEntry(path, "a").keep_settings({"A": "1", "C": "3"})

    assert configfile.load(path).targets["a"].env == {"A": "1", "C": "3"}
    assert "# why" in path.read_text()


def test_a_target_without_an_environment_gets_one(file: Path) -> None:
    ConfigEntry(file, "other").keep_settings({"A": "1"})

    assert configfile.load(file).targets["other"].env == {"A": "1"}


def test_mode_and_link_of_the_file_stay(file: Path, tmp_path: Path) -> None:
    file.chmod(0o640)
    link = tmp_path / "link.toml"
    link.symlink_to(file)

    ConfigEntry(link, "ct200").keep_settings({"A": "1"})

    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert configfile.load(file).targets["ct200"].env == {"A": "1"}
    assert sorted(os.listdir(tmp_path)) == ["config.toml", "link.toml"]


def test_a_name_that_no_environment_can_hold_changes_nothing(file: Path) -> None:
    with pytest.raises(ConsoleError, match="names without '='"):
        ConfigEntry(file, "ct200").keep_settings({"A=B": "1"})

    assert file.read_text() == _FILE
    assert os.listdir(file.parent) == ["config.toml"]


def test_a_target_that_went_is_said_and_nothing_changes(file: Path) -> None:
    with pytest.raises(ConsoleError, match=r"targets\.gone is no longer there"):
        ConfigEntry(file, "gone").keep_settings({})

    assert file.read_text() == _FILE


def test_a_new_target_stands_at_the_end_of_a_file_and_the_rest_is_untouched(file: Path) -> None:
    entry = ConfigEntry(file, "ct201")
    before = entry.is_written

    entry.add(Target(host="10.1.2.7", command=("/root/run.sh",), env={"A": "1"}, gpus=Gpus(expected=8)))

    assert (before, entry.is_written) == (False, True)
    assert file.read_text().startswith(_FILE)
    assert configfile.load(file).targets["ct201"].gpus == Gpus(expected=8)


def test_a_new_file_explains_itself(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "config.toml"

    ConfigEntry(path, "ct201").add(Target(host="10.1.2.7", command=("/root/run.sh",)))

    assert path.read_text() == configwriter.render("ct201", Target(host="10.1.2.7", command=("/root/run.sh",)))
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_target_is_not_added_twice(file: Path) -> None:
    with pytest.raises(ConsoleError, match="is there already"):
        ConfigEntry(file, "ct200").add(Target())

    assert file.read_text() == _FILE


@given(
    env=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda n: "=" not in n and "\0" not in n),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        max_size=5,
    ),
    arguments=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=3),
)
def test_whatever_is_kept_is_read_again_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, env: dict[str, str], arguments: list[str]
) -> None:
    path = tmp_path_factory.mktemp("config") / "config.toml"
    path.write_text(_FILE)

    ConfigEntry(path, "ct200").keep_settings(env, arguments)

    target = configfile.load(path).targets["ct200"]
    assert target.env == env
    assert target.command == ("/root/run.sh", *arguments)


def test_a_run_started_by_hand_tells_command_directory_log_and_gpus() -> None:
    by_hand = fixtures.BY_HAND
    assert by_hand.run is not None
    tree = (
        Process(pid=20, start_ticks=2, parent=10, argv=("python", "-u", "train.py")),
        Process(pid=10, start_ticks=1, parent=1, argv=("bash", "/root/run.sh")),
    )
    snapshot = replace(
        by_hand,
        run=replace(by_hand.run, cwd="/workspace/dflash"),
        processes=tree,
        log=LogStatus(path="/workspace/logs/hand.txt"),
    )

    found = with_found(Target(host="h", match=("train.py",)), snapshot)

    assert found.command == ("bash", "/root/run.sh")
    assert found.cwd == "/workspace/dflash"
    assert found.log == "/workspace/logs/train_{name}.txt"
    assert found.gpus.expected == sum(gpu.owner == "run" for gpu in snapshot.gpus.gpus)
    assert (found.host, found.match) == ("h", ("train.py",))


def test_what_the_target_says_is_not_replaced_by_what_was_found() -> None:
    said = Target(host="h", command=("/a",), cwd="/b", log="/c/{name}", gpus=Gpus(expected=2), match=("train.py",))

    assert with_found(said, fixtures.BY_HAND) == said


def test_braces_in_a_found_path_are_no_template() -> None:
    snapshot = replace(fixtures.BY_HAND, log=LogStatus(path="/data/{x}/a.log"))

    found = with_found(Target(), snapshot)

    configfile.check(found, "t", "test")
    assert found.log.format(name="n") == "/data/{x}/train_n.log"
