"""What a hung run can tell, put into one file on the operator's machine: the console's word first, then the host's.

The file is 0600 and new; nothing is overwritten. The host takes secrets out of its part, and the console's is scrubbed
here.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import platformdirs

from console.configfile import APP
from console.model import Diagnosis, Snapshot
from console.reasons import ConsoleError, Exit, Reason

_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]")
_TRIES = 100


def default_path(snapshot: Snapshot) -> Path:
    """Return `<run>-<time>.diagnosis.txt` in the user's state directory."""
    name = snapshot.run.name if snapshot.run and snapshot.run.name else snapshot.target
    safe = _UNSAFE.sub("_", name).lstrip(".") or "run"
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(snapshot.at))
    return platformdirs.user_state_path(APP) / f"{safe[:80]}-{stamp}.diagnosis.txt"


def save(snapshot: Snapshot, seen: bytes, path: Path | None) -> Diagnosis:
    """Write the file; where no `path` is given a new one is chosen. Blocks for as long as the disk does.

    Raises: ConsoleError(NOT_SAVED), also where `path` exists.
    """
    from console.host.scrub import scrub  # its expressions are not needed at every start

    text = scrub(head(snapshot)).encode("utf-8", "replace") + seen
    run = snapshot.run
    chosen = path or default_path(snapshot)
    try:
        if path is None:
            chosen.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        written = _write_new(chosen, text, may_rename=path is None)
    except OSError as exc:
        raise ConsoleError(Reason.NOT_SAVED, f"{chosen}: {exc.strerror or exc}", Exit.USAGE) from exc
    return Diagnosis(
        path=str(written.absolute()), bytes=len(text), run=run.name if run else None, run_id=run.id if run else None
    )


def _write_new(path: Path, data: bytes, *, may_rename: bool) -> Path:
    for number in range(1, _TRIES):
        chosen = path if number == 1 else path.with_name(path.name.replace(".diagnosis", f".{number}.diagnosis"))
        try:
            descriptor = os.open(chosen, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            if not may_rename:
                raise
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        return chosen
    raise FileExistsError(17, "too many of that second", str(path))


def head(snapshot: Snapshot) -> str:
    """Return what the console knows, and how old that is."""
    run, progress, ages = snapshot.run, snapshot.progress, snapshot.ages
    lines = [
        f"dflash-console diagnosis of {snapshot.target}: {run.name if run else 'no run known'}",
        "Secrets are taken out as far as they can be recognised: read it before you pass it on.",
        "",
        f"made      {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(snapshot.at))} over {snapshot.link.label}",
        f"verdict   {snapshot.verdict}",
    ]
    if run is not None:
        lines.append(
            f"run       id {run.id or 'none: started by hand'}  pid {run.pid or '?'}  log {run.log_path or '?'}"
        )
    lines.append(
        f"step      {_or_unknown(progress.step)}  loss {_or_unknown(progress.loss)}  {progress.phase}".rstrip()
    )
    known = {"link": ages.link, "log": ages.log, "GPUs": ages.gpu, "processes": ages.process}
    lines.append("ages      " + "  ".join(f"{what} {_seconds(age)}" for what, age in known.items()))
    if snapshot.reason is not None:
        reason = snapshot.reason
        lines.append(f"reason    {reason.slug}: {reason.detail or reason.title}")
        lines += [f"  {fact.label}: {fact.text}" for fact in reason.facts]
    lines += [f"warning   {each.slug}: {each.detail or each.title}" for each in snapshot.warnings]
    stages = (f"{each.stage} {each.state} {each.detail or each.evidence or each.why}" for each in snapshot.stages)
    lines += [f"stage     {stage}".rstrip() for stage in stages]
    return "\n".join(lines) + "\n"


def _or_unknown(value: object) -> str:
    return "?" if value is None else str(value)


def _seconds(age: float | None) -> str:
    return "?" if age is None else f"{age:.1f} s"
