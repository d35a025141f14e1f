"""Being told of changes by the kernel, and finding out where it tells nothing."""

import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.host import notify


@pytest.fixture
def ears() -> Iterator[notify.Ears]:
    made = notify.Ears()
    yield made
    made.close()


def ready(ears: notify.Ears) -> set[int]:
    fds = ears.fds()
    return set(select.select(fds, [], [], 0.0)[0]) if fds else set()


def test_write_rings_once_until_the_next_look(ears: notify.Ears, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\n")
    assert ears.listen({str(log): notify.FILE})
    ears.found(True)
    assert not ears.ring(ready(ears))

    with log.open("a") as file:
        file.write("two\n")

    assert ears.ring(ready(ears))
    assert ears.fds() == []  # a flood must not wake anybody up for each line of it
    ears.listen({str(log): notify.FILE})
    ears.found(True)
    assert not ears.ring(ready(ears))
    assert not ears.deaf


def test_file_replaced_by_rename_is_heard_in_its_directory(ears: notify.Ears, tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text("{}")
    ears.listen({str(tmp_path): notify.ENTRIES})
    ears.found(False)

    (tmp_path / ".spare").write_text("{}")
    os.rename(tmp_path / ".spare", tmp_path / "status.json")

    assert ears.ring(ready(ears))


def test_the_name_leads_to_another_file_after_the_next_look(ears: notify.Ears, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("old\n")
    ears.listen({str(log): notify.FILE})
    ears.found(True)
    os.rename(log, tmp_path / "log.1")
    log.write_text("new\n")
    assert ears.ring(ready(ears))
    ears.listen({str(log): notify.FILE})
    ears.found(True)

    with (tmp_path / "log.1").open("a") as file:
        file.write("more of the old\n")
    assert not ears.ring(ready(ears))
    with log.open("a") as file:
        file.write("more of the new\n")

    assert ears.ring(ready(ears))


def test_missing_file_is_not_listened_to(ears: notify.Ears, tmp_path: Path) -> None:
    assert not ears.listen({str(tmp_path / "log"): notify.FILE})


def test_changes_that_nobody_announces_make_deaf(ears: notify.Ears, tmp_path: Path) -> None:
    """What was there at first, or was left unread, needed no announcement."""
    for changed, complete in ((True, False), (True, True), (False, True), (True, True)):
        ears.listen({str(tmp_path): notify.ENTRIES})
        ears.found(changed, complete)
        assert not ears.deaf

    ears.listen({str(tmp_path): notify.ENTRIES})
    ears.found(True)

    assert ears.deaf
    assert ears.fds() == []
