"""Lines of a log that are saved are those that were seen, all of them, or there is no file."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.reasons import ConsoleError, Reason
from console.state.logquery import Place
from console.ui.logrange import LogRange
from console.ui.logview import LogView
from tests.ui.filelogs import FileLogs
from tests.ui.test_logview import view_of

MOST = 3 << 20


def _range_of(view: LogView, end: int = MOST) -> LogRange:
    return LogRange(view.file.logs, view, view.files, 5, end)


def _log(folder: Path) -> Path:
    path = folder / "log"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(400_000)))
    return path


async def test_a_range_of_megabytes_is_saved_to_the_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _log(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    await _range_of(view_of(path)).write("~/saved")

    assert (tmp_path / "saved").read_bytes() == path.read_bytes()[5:MOST]
    assert (tmp_path / "saved").stat().st_mode & 0o777 == 0o600


async def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    path = _log(tmp_path)
    (tmp_path / "saved").write_text("mine")

    with pytest.raises(FileExistsError):
        await _range_of(view_of(path)).write(str(tmp_path / "saved"))

    assert (tmp_path / "saved").read_text() == "mine"


class _Broken(FileLogs):
    """Something happens behind the first look."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(path)
        self._what = what
        self.view: LogView | None = None

    async def raw(self, place: Place, offset: int, length: int) -> bytes:
        data = await super().raw(place, offset, length)
        assert self.view is not None
        if self._what == "anew":
            self.view._buffer.begin_anew("log was replaced by a new file", 0.0)
        elif self._what == "cut":
            self.paths[0].write_bytes(b"short\n")
        elif self.asked:
            raise ConsoleError(Reason.NO_LINK, "there is no connection to the host now")
        self.asked.append("raw")
        return data


@pytest.mark.parametrize(
    ("what", "reason"), [("anew", Reason.LOG_REPLACED), ("cut", Reason.LOG_REPLACED), ("link", Reason.NO_LINK)]
)
async def test_of_a_range_that_could_not_be_read_whole_nothing_is_left(
    tmp_path: Path, what: str, reason: Reason
) -> None:
    view = view_of(_log(tmp_path))
    logs = view.file.logs = _Broken(tmp_path / "log", what)
    logs.view = view

    with pytest.raises(ConsoleError) as raised:
        await _range_of(view).write(str(tmp_path / "saved"))

    assert raised.value.reason is reason
    assert logs.asked
    assert not (tmp_path / "saved").exists()
