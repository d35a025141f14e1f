"""Calling the command line as a script would, within the test's process: one import instead of one per call."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from console import cli, configwriter
from console.demo.host import NAME, DemoHost


@dataclass(frozen=True, slots=True)
class Done:
    """What a call gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        lines = self.out.splitlines()
        assert len(lines) == 1, self.out
        answer: dict[str, Any] = json.loads(lines[0])
        return answer


def call(*words: str) -> Done:
    """Run the command line to its end."""
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main(list(words))
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Done(int(code), out.getvalue(), err.getvalue())


class Console:
    """The command line, pointed at one demo host."""

    def __init__(self, host: DemoHost, **changes: Any) -> None:
        self.host = host
        self.config = host.folder / "config.toml"
        self.config.write_text(configwriter.render_whole(NAME, replace(host.target, **changes)))

    def __call__(self, command: str, *words: str) -> Done:
        return call(command, "--config", str(self.config), *words)

    def restart(self, *words: str) -> Done:
        """Start a fresh run and return what came of it."""
        return self("restart", "--yes", "--timeout", "40s", *words)

    def free(self) -> None:
        """End what runs, so that the next test begins with nothing."""
        self.host.inject("none")
        stopped = self("stop", "--yes", "--timeout", "20s")
        assert stopped.code in (0, 5), stopped


def fast_host(folder: Path) -> DemoHost:
    """Return a host whose run steps a second or two after its start, and then eight times a second."""
    return DemoHost(folder, speed=8.0, load_s=6.0)
