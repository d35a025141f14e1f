"""`init`: see whether a target answers, and write the commented config file. What it asks is in `wizard`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from console import configfile, configwriter
from console.config import Target
from console.headless import output, wizard
from console.headless.session import link_error, opened
from console.model import LinkState, Snapshot
from console.reasons import ConsoleError, Exit, Reason

_PROBE_S = 30.0


def run(host: str | None, *, config_path: Path | None, name: str | None, no_probe: bool, **given: Any) -> int:
    """Carry the command out; return its exit code. A target that doesn't answer is written all the same, and said."""
    path = config_path or configfile.default_path()
    if path.exists():
        raise ConsoleError(Reason.CONFIG, f"{path} exists already and was left as it is", Exit.USAGE)
    flags = {key: value for key, value in given.items() if value not in (None, ())}
    if host is not None:
        flags["host"] = host
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    is_way = True
    if asks:
        flags, is_way = wizard.ask(flags, tries=not no_probe)
    if "host" not in flags:
        raise ConsoleError(Reason.CONFIG, "no host given; expected: dflash-console init HOST", Exit.USAGE)
    target = configfile.with_flags(Target(), wizard.with_defaults(flags))
    name = name or _name_for(target)
    configfile.check_name(name, "command line")
    answered = no_probe or (is_way and _probe(name, target))
    configwriter.write_new(path, configwriter.render(name, target))
    output.say(f"wrote {path}: target {name}")
    if not target.command:
        output.say("next: set `command` in it, then: dflash-console")
    else:
        output.say(
            f"next: dflash-console {name}" if answered else f"next: mend the way to {name}, then: dflash-console"
        )
    return Exit.OK


def _name_for(target: Target) -> str:
    """Name a target after its container's number, else after its host."""
    number = next((word for word in target.exec if word.isdigit()), None)
    if number is not None:
        return f"ct{number}"
    return "".join(char if char.isalnum() or char in "._-" else "-" for char in target.host).strip("-._") or "host"


def _probe(name: str, target: Target) -> bool:
    """Connect once and say on stderr how far it went."""
    try:
        asyncio.run(_try_once(name, target))
    except ConsoleError as error:
        for line in output.error_lines(error):
            print(f"! {line}", file=sys.stderr)
        return False
    return True


async def _try_once(name: str, target: Target) -> None:
    deadline = asyncio.get_running_loop().time() + _PROBE_S

    def answered(snapshot: Snapshot) -> Snapshot | None:
        if snapshot.link.state in (LinkState.LOST, LinkState.REFUSED):
            raise link_error(snapshot)
        return snapshot if engine.has_word and snapshot.gpus.source != "unknown" else None

    async with opened(name, target) as engine:
        snapshot = await engine.until(answered, deadline)
        hello = engine.hello
        if snapshot is None or hello is None:
            raise ConsoleError(Reason.LINK_TIMEOUT, f"no word from {name} within {_PROBE_S:.0f} s", Exit.LINK)
        found = [f"ok link: {snapshot.link.label}", f"ok python {hello.python} as {hello.user} on {hello.node}"]
        panel = snapshot.gpus
        gpus = f"{len(panel.gpus)} GPUs by {panel.source}" if panel.gpus else f"no GPUs: {panel.why}"
        found.append(f"{'ok' if panel.gpus else '!'} {gpus}")
        if snapshot.run and snapshot.run.alive:
            how = "started by hand" if snapshot.run.by_hand else f"by {snapshot.run.operator}"
            found.append(f"ok a run is there: {snapshot.run.name}, {how}")
        for line in found:
            print(line, file=sys.stderr)
