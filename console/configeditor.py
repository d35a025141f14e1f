"""Changes to a config file that a person wrote: only what is asked for changes, comments and order stay.

What could not be read again is not written: the new text is checked as any config is, then takes the old one's place.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec

from console import configfile, configwriter
from console.config import Gpus, Target
from console.model import Process, Snapshot
from console.reasons import ConsoleError, Exit, Reason

if TYPE_CHECKING:
    import tomlkit


class ConfigEntry:
    """One target's place in a config file, which may not be there yet."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name

    @property
    def is_written(self) -> bool:
        """Whether the file has this target. False for a file that can't be read, too."""
        try:
            return self.name in configfile.load(self.path).targets
        except ConsoleError:
            return False

    def keep_settings(self, env: Mapping[str, str], arguments: Sequence[str] = ()) -> None:
        """Make `env` the target's environment, and add `arguments` to its command.

        Raises: ConsoleError(CONFIG); the file is as it was then.
        """
        document = self._read()
        table: Any = document["targets"][self.name]
        if "env" not in table:
            table["env"] = _inline_table()
        for gone in [key for key in table["env"] if key not in env]:
            del table["env"][gone]
        for key, value in env.items():
            if table["env"].get(key) != value:
                table["env"][key] = value
        for argument in arguments:
            table["command"].append(argument)
        self._replace(document.as_string())

    def add(self, target: Target) -> None:
        """Write the target as a new one: a new file explains itself, one that is there gets it at its end.

        Raises: ConsoleError(CONFIG); nothing is changed then.
        """
        if not self.path.exists():
            configwriter.write_new(self.path, configwriter.render(self.name, target))
            return
        text = self._text()
        if self.name in configfile.parse(self.path, text).targets:
            raise ConsoleError(Reason.CONFIG, f"{self.path}: targets.{self.name} is there already", Exit.USAGE)
        joint = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
        self._replace(text + joint + configwriter.render_table(self.name, target))

    def _text(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise ConsoleError(Reason.CONFIG, f"{self.path}: {exc}", Exit.USAGE) from exc

    def _read(self) -> tomlkit.TOMLDocument:
        import tomlkit

        text = self._text()
        if self.name not in configfile.parse(self.path, text).targets:
            raise ConsoleError(Reason.CONFIG, f"{self.path}: targets.{self.name} is no longer there", Exit.USAGE)
        return tomlkit.parse(text)

    def _replace(self, text: str) -> None:
        configfile.parse(self.path, text)
        file = self.path.resolve()  # a link into a folder of dotfiles goes on being one
        try:
            mode = file.stat().st_mode & 0o7777
            handle, new = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as stream:
                    stream.write(text)
                    stream.flush()
                    os.fchmod(stream.fileno(), mode)
                    os.fsync(stream.fileno())
                os.replace(new, file)
            except BaseException:
                os.unlink(new)
                raise
        except OSError as exc:
            raise ConsoleError(Reason.CONFIG, f"{self.path}: {exc.strerror}", Exit.USAGE) from exc


def with_found(target: Target, snapshot: Snapshot) -> Target:
    """Return `target` with what a run that was started by hand tells of itself, where the target says nothing."""
    run = snapshot.run
    if run is None:
        return target
    found: dict[str, Any] = {}
    plain = Target()
    if not target.command and (argv := _topmost(snapshot.processes).argv or run.argv):
        found["command"] = argv
    if target.cwd == plain.cwd and run.cwd.startswith("/"):
        found["cwd"] = run.cwd
    path = snapshot.log.path or run.log_path
    if target.log == plain.log and path and path.startswith("/"):
        found["log"] = _template(path)
    used = sum(gpu.owner == "run" for gpu in snapshot.gpus.gpus)
    if target.gpus == Gpus() and used:
        found["gpus"] = Gpus(expected=used)
    return msgspec.structs.replace(target, **found)


def _topmost(processes: Sequence[Process]) -> Process:
    pids = {process.pid for process in processes}
    tops = [process for process in processes if process.parent not in pids]
    return tops[0] if tops else Process(pid=0, start_ticks=0)


def _template(path: str) -> str:
    """Return a template for logs beside this one. Braces of a path are no fields of a template."""
    folder, suffix = PurePosixPath(path.replace("{", "{{").replace("}", "}}")).parent, PurePosixPath(path).suffix
    return str(folder / f"train_{{name}}{suffix if suffix.isascii() and suffix.isprintable() else '.log'}")


def _inline_table() -> Any:
    import tomlkit

    return tomlkit.inline_table()
